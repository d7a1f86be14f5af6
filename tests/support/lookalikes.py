"""Pages that come in the place of other pages, and good pages that look like them."""

from __future__ import annotations

FILLER = (
    "A long walk through the old town begins at the river, where boats have been built for as long as anyone can "
    "remember, and ends at the market, where they are sold. "
)


def article(title: str, text: str, *, head: str = "", extra: str = "") -> str:
    """A page of a site with a frame of its own, built as all its pages are."""
    return (
        f"<html><head><title>{title} - The Daily</title>{head}</head><body><header><nav><a href=/>Home</a>"
        f"<a href=/news>News</a></nav></header><main><article><h1>{title}</h1><p class=text>{text}</p></article>"
        f"</main>{extra}<footer><p>The Daily, all rights reserved</p></footer></body></html>"
    )


def bare(title: str, text: str, *, head: str = "", extra: str = "") -> str:
    return f"<html><head><title>{title}</title>{head}</head><body><h1>{title}</h1><p>{text}</p>{extra}</body></html>"


CLOUDFLARE = (
    "<!DOCTYPE html><html lang=en-US><head><title>Just a moment...</title><meta name=robots content=noindex></head>"
    "<body><div class=main-wrapper><noscript><div class=h2>Enable JavaScript and cookies to continue</div></noscript>"
    "</div><script>(function(){window._cf_chl_opt = {cvId: '3', cRay: '8e2f0d'};})();</script></body></html>"
)
AKAMAI = (
    "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission to access "
    '"http://shop.example/item/1" on this server.<P>Reference #18.2f5c1602.1700000000.1a2b3c</BODY></HTML>'
)
DATADOME = (
    "<html><head><title>shop.example</title><style>#cmsg{animation: A 1.5s;}</style></head><body>"
    "<p id=cmsg>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','host':"
    "'geo.captcha-delivery.com'}</script><script src=https://ct.captcha-delivery.com/c.js></script></body></html>"
)
LOGIN = (
    "<html><head><title>Sign in | The Daily</title></head><body><h1>Sign in</h1><form method=post action=/session>"
    "<label>E-mail<input type=email name=email></label><label>Password<input type=password name=password></label>"
    "<button>Sign in</button></form></body></html>"
)
LOGIN_ZH = (
    "<html><head><title>用户登录</title></head><body><form><p>请先登录后查看</p><input name=u>"
    "<input type=PASSWORD name=p></form></body></html>"
)
SHELL = (
    "<!doctype html><html><head><title>The Daily</title></head><body><noscript>You need to enable JavaScript to run "
    "this app.</noscript><div id=root></div><script src=/static/main.js></script></body></html>"
)
NOT_THE_PAGE = {
    "cloudflare": CLOUDFLARE,
    "akamai": AKAMAI,
    "datadome": DATADOME,
    "access denied": bare("Access Denied", "Your request was blocked."),
    "captcha": bare("Robot check", "Please verify you are a human. Enter the characters you see below."),
    "captcha without a title": "<html><body><p>Please complete the captcha to continue.</p></body></html>",
    "rate limit": bare("Too many requests", "Please slow down."),
    "频繁": "<html><head><title>提示</title></head><body><p>您的访问过于频繁，请稍后再试</p></body></html>",
    "验证码": "<html><body><div>请输入验证码<input name=code><img src=/code.png></div></body></html>",
    "安全验证": bare("安全验证", "请完成下方验证后继续操作"),
    "滑块": bare("人机验证", "请拖动滑块完成拼图"),
    "login": LOGIN,
    "登录": LOGIN_ZH,
    "soft 404": bare("404 Not Found", "The page you are looking for could not be found."),
    "soft 404 with a site's name": bare("Page not found | The Daily", "Try the search."),
    "页面不存在": bare("页面不存在", "您访问的页面不存在或已被删除"),
    "商品已下架": bare("提示信息", "抱歉，您查找的商品不存在"),
    "shell": SHELL,
    "maintenance": bare("We'll be back soon", "The site is under maintenance."),
}
IS_THE_PAGE = {
    "an article about captchas": article("How CAPTCHAs ask you to prove you are human", FILLER * 12),
    "an article that quotes a block page": article("Access denied", "It said: you have been blocked. " + FILLER * 12),
    "an article about a code": article("请输入验证码是什么意思", "验证码是用来区分人和机器的。" * 120),
    "an article on a status code": article("HTTP 404: a history of not found", FILLER * 12),
    "a short page": article("Closed on Monday", "The library stays closed on Monday."),
    "one word": "<html><body><h1>A</h1></body></html>",
    "a page with a login form in its frame": article(
        "Market day", FILLER * 5, extra="<form><input type=password name=p><button>Log in</button></form>"
    ),
    "a page with a form's captcha": article(
        "Contact", FILLER * 4, extra="<div class=g-recaptcha data-sitekey=x></div><script src=/recaptcha.js></script>"
    ),
    "a good page behind cloudflare": article(
        "Market day", FILLER * 3, extra="<script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>"
    ),
    "sold out": article("Red lamp", "This product is sold out and no longer available."),
}
