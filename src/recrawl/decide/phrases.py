"""What pages say that stand in the place of other pages, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache


class Trouble(StrEnum):
    """The kinds of pages that are not what was asked for."""

    BLOCKED = "block page"
    CAPTCHA = "captcha"
    LOGIN = "login wall"
    MISSING = "soft 404"
    SHELL = "empty shell"


# Demands and refusals, not topics: an article may well be about captchas.
_PHRASES = {
    Trouble.BLOCKED: (
        r"access (?:to this (?:page|site|resource) )?(?:is |has been |was )?(?:temporarily )?"
        r"(?:denied|blocked|restricted)",
        r"you (?:have been|are|were) (?:temporarily )?(?:blocked|banned|rate[- ]limited)",
        r"you don'?t have permission to access",
        r"(?:unusual|suspicious) (?:activity|traffic|requests)|automated (?:requests|queries)",
        r"too many requests|rate limit exceeded|request (?:was |has been )?(?:blocked|rejected|unsuccessful)",
        r"pardon our interruption|attention required|please wait while we (?:check|verify)",
        r"just a moment\.{0,3}|checking your browser|ddos protection|your ip (?:address )?(?:has been|is|was)",
        r"(?:site|service|server|website) (?:is )?(?:under maintenance|temporarily unavailable|is temporarily down)",
        r"(?:down|closed) for maintenance|we(?:'ll| will) be (?:right )?back(?: soon)?",
        r"访问(?:过于|太|过)?频繁|操作(?:过于|太)频繁|请求(?:过于|太)频繁|频繁访问|访问过快",
        r"访问(?:被|已被|受到?)(?:拒绝|限制|阻断|拦截|禁止)|拒绝访问|禁止访问|访问受限|访问异常|异常(?:访问|流量|请求)",
        r"您的?(?:ip|IP)\S{0,12}(?:被|异常|限制)|(?:网络|环境)(?:环境)?存在?异常|请求被(?:拦截|阻断)|已被(?:网站管理员|防火墙)",
        r"系统(?:维护|升级)中|网站(?:维护|升级)中|正在维护|服务(?:器)?(?:繁忙|暂不可用)",
    ),
    Trouble.CAPTCHA: (
        r"(?:verify|confirm|prove|make sure|show us)(?: that)? you(?:'re| are)(?: a| not a)? (?:human|robot|real)",
        r"are you (?:a )?(?:human|robot)|i'?m not a robot|human verification|robot check",
        r"security (?:check|verification)",
        r"(?:complete|solve|enter|type) (?:the |this )?(?:captcha|security (?:check|code)|characters)",
        r"(?:captcha|verification) (?:is )?required|enable javascript and cookies to continue",
        r"请?(?:输入|填写|完成)(?:下方|以下|图片?中?的?|右侧)?(?:验证码|图形验证|安全验证|人机验证|验证)",
        r"安全验证|人机验证|滑动验证|滑块验证|身份核实|验证您?(?:是|不是)(?:真人|人类|机器人)|请?拖动(?:下方)?滑块|百度安全验证",
    ),
    Trouble.LOGIN: (
        r"(?:log|sign)[ -]?in(?: (?:to (?:continue|view|your account|proceed)|required|first))?",
        r"you (?:must|need to) (?:be logged in|log ?in|sign ?in)|members? only|create an account to",
        r"请先?登[录陆](?:后(?:查看|继续|访问))?|用户登[录陆]|账号登[录陆]|会员登[录陆]|登[录陆]后(?:可|才能)?(?:查看|继续|访问)|登[录陆]",
    ),
    Trouble.MISSING: (
        r"(?:error )?404(?: error)?(?:[:\s-]+)?(?:page |file )?(?:not found|error)|error 404|http 404",
        r"(?:the |this |that )?(?:page|item|product|article|content|file|url|resource)"
        r"(?: you(?:'re| are| were) looking for)? "
        r"(?:(?:was|is|could|can) ?not (?:be )?found|cannot be found|can't be found|not found"
        r"|does(?: not|n't) exist|no longer exists|has been (?:removed|deleted))",
        r"not found|nothing (?:was )?found here|oops!? (?:that|this) page can'?t be found",
        r"(?:您?(?:要|所)?(?:访问|查找|浏览)的)?(?:页面|网页|内容|商品|文章|帖子|信息|资源)(?:不存在|找不到|未找到|已(?:被)?删除|已下架|已失效|走丢了)",
        r"(?:找不到|未找到|没有找到)(?:该|此|您?(?:要|所)?(?:访问|查找)的)?(?:页面|网页|内容|商品|文章)|页面走丢了|404错误",
    ),
    Trouble.SHELL: (
        r"enable javascript(?: to (?:run this app|continue|view|use))?",
        r"(?:javascript is (?:required|disabled)|requires? javascript|without javascript enabled)",
        r"(?:请|需要)(?:启用|开启|打开)\s*javascript",
    ),
}  # fmt: skip
# One of these words is in every phrase of its kind: looked for first, since a page as a rule has none of them.
_STEMS = {
    Trouble.BLOCKED: (
        "denied|blocked|banned|restricted|limit|permission|unusual|suspicious|automated|too many|request was|"
        "request has|request rejected|request unsuccessful|interruption|attention required|please wait while|"
        "just a moment|checking your|ddos|your ip|maintenance|unavailable|temporarily down|be back|right back|"
        "频繁|过快|拒绝|限制|阻断|拦截|禁止|受限|异常|防火墙|网站管理员|维护|升级|繁忙|暂不可用|的ip|您ip"
    ),
    Trouble.CAPTCHA: (
        "human|robot|captcha|security check|security verification|security code|verification|characters|"
        "you are real|you're real|cookies to|验证|核实|滑块"
    ),
    Trouble.LOGIN: "log in|login|log-in|sign in|signin|sign-in|logged|members only|member only|account to|登录|登陆",
    Trouble.MISSING: "404|found|exist|removed|deleted|不存在|找不到|未找到|没有找到|删除|下架|失效|走丢",
    Trouble.SHELL: "javascript",
}
_WORDS = {kind: stems.split("|") for kind, stems in _STEMS.items()}
_FOUND = {kind: re.compile("|".join(phrases), re.IGNORECASE) for kind, phrases in _PHRASES.items()}
_PARTS = re.compile(r"\s+[-|–—·»:]\s+|[|_–—]|\s+::\s+")


@lru_cache(maxsize=256)
def in_heading(heading: str) -> Mapping[Trouble, float]:
    """The kinds of trouble that a title or a heading speaks of, and how much of it, at most 1, the phrase takes.

    What a title adds after a dash or a bar, the site's name as a rule, does not count.
    """
    found: dict[Trouble, float] = {}
    for part in filter(None, (part.strip(" .!！。…") for part in _PARTS.split(heading))):
        for kind in _kinds(part):
            for match in _FOUND[kind].finditer(part):
                found[kind] = max(found.get(kind, 0.0), len(match[0]) / len(part))
    return found


@lru_cache(maxsize=16)
def in_text(text: str) -> Mapping[Trouble, str]:
    """The kinds of trouble that a short text speaks of, with the words.

    In running text only whole demands count: "log in" and "not found" stand on many a good page.
    """
    found: dict[Trouble, str] = {}
    for kind in _kinds(text):
        longest = max((match[0] for match in _FOUND[kind].finditer(text)), key=len, default="")
        if len(longest) > 9 or (longest and not longest.isascii() and len(longest) >= 4):
            found[kind] = " ".join(longest.split())
    return found


def _kinds(text: str) -> list[Trouble]:
    folded = text.lower()
    return [kind for kind, words in _WORDS.items() if any(word in folded for word in words)]
