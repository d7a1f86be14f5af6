"""How the demo site's HTML looks: two frames of a shop, a newspaper, lists, and the pages that are none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from recrawl.demo.content import Article, Item, Offer

_ADS = (
    "Rooms with a view of the bay",
    "Two oysters for one on Fridays",
    "海边民宿 周末八折",
    "Learn to sail in a week",
)
_LABELS = {
    "en": {"sku": "Item no.", "price": "Price", "stock": "Availability", "viewers": "people are looking at this now"},
    "zh": {"sku": "货号", "price": "价格", "stock": "库存", "viewers": "人正在看"},
}
_BYLINE = {"en": "By", "zh": "记者"}
_BUY = {"en": "Add to basket", "zh": "加入购物车"}
_SITE = {"en": "The Saltmere Gazette", "zh": "盐湾日报"}


@dataclass(frozen=True, slots=True)
class Visit:
    """What differs between two requests for one page, though nothing changed. `number` counts the page's requests."""

    path: str
    number: int

    @property
    def viewers(self) -> int:
        return 5 + (len(self.path) + 7 * self.number) % 61

    @property
    def token(self) -> str:
        return hashlib.sha256(f"{self.path} {self.number}".encode()).hexdigest()[:32]

    @property
    def ad(self) -> str:
        return _ADS[self.number % len(_ADS)]


def article(item: Article, base: str, visit: Visit | None) -> str:
    """An article. With a visit, counters and a token that belong to that one request stand around the text."""
    text = "\n".join(f"      <p>{escape(paragraph)}</p>" for paragraph in item.paragraphs)
    noise = str(visit.viewers) if visit else item.noise
    token = f'<input type="hidden" name="token" value="{visit.token}">' if visit else ""
    ad = f'<div class="ad" role="complementary">{escape(visit.ad)}</div>' if visit else ""
    url = base + item.path
    published = item.published.isoformat()
    facts: dict[str, object] = {
        "@type": "NewsArticle",
        "headline": item.title,
        "datePublished": published,
        "author": {"@type": "Person", "name": item.author},
        "mainEntityOfPage": url,
        "inLanguage": item.lang,
    }
    head = f"""\
  <meta name="author" content="{escape(item.author)}">
  <meta property="og:type" content="article">
  <meta property="og:title" content="{escape(item.title)}">
  <meta property="og:site_name" content="{_SITE[item.lang]}">
  <meta property="article:published_time" content="{published}">
  <link rel="canonical" href="{url}">
{_json_ld(facts) if item.number % 2 else ""}"""
    body = f"""\
  <main>
    <article>
      <h1>{escape(item.title)}</h1>
      <p class="byline">{_BYLINE[item.lang]} <span class="author" rel="author">{escape(item.author)}</span>
        <time datetime="{published}">{published[:10]} {published[11:16]}</time></p>
      <div class="article-body">
{text}
      </div>
    </article>
  </main>
  <aside class="sidebar">{ad}
    <form class="comments" action="/comment" method="post">{token}<span class="count">{noise}</span> comments</form>
  </aside>"""
    return _document(item.title, item.lang, head, body)


def offer(item: Offer, base: str, visit: Visit, *, new_frame: bool) -> str:
    """A product. Viewers, token and advertisement belong to one request; the frame is the old or the new one."""
    labels = _LABELS[item.lang]
    facts: dict[str, object] = {"@type": "Product", "sku": item.sku, "name": item.name, "description": item.blurb}
    head = f"""\
  <meta property="og:type" content="product">
  <link rel="canonical" href="{base}{item.path}">
{_json_ld(facts) if int(item.sku[3:]) % 2 else ""}"""
    lines = "\n".join(
        f'      <dt>{labels[name]}</dt><dd class="{name}">{escape(value)}</dd>'
        for name, value in (("sku", item.sku), ("price", item.price), ("stock", item.stock))
    )
    core = f"""\
    <h1 class="name">{escape(item.name)}</h1>
    <dl>
{lines}
    </dl>
    <p class="live"><span class="viewers">{visit.viewers}</span> {labels["viewers"]}</p>
    <form action="/basket" method="post"><input type="hidden" name="token" value="{visit.token}">
      <button>{_BUY[item.lang]}</button></form>
    <div class="blurb"><p>{escape(item.blurb)}</p></div>"""
    ad = f'<div class="ad">{escape(visit.ad)}</div>'
    if new_frame:
        body = f"""\
  <div class="sale-banner"><strong>Summer sale</strong> Free delivery on all orders over $80 / 满 500 元包邮</div>
  <div class="grid grid--wide"><section class="card card--product">
{core}
  </section>{ad}</div>"""
    else:
        body = f'  <div class="layout">{ad}<main class="product">\n{core}\n  </main></div>'
    return _document(item.name, item.lang, head, body)


def listing(title: str, items: Iterable[Item]) -> str:
    """A page of links."""
    links = "\n".join(
        f'    <li><a href="{item.path}">{escape(item.title if isinstance(item, Article) else item.name)}</a></li>'
        for item in items
        if isinstance(item, Article | Offer)
    )
    return _document(title, "en", "", f"  <main><h1>{title}</h1><ul>\n{links}\n  </ul></main>")


def missing() -> str:
    return _document("Page not found", "en", "", "  <main><h1>404</h1><p>There is nothing at this address.</p></main>")


def login() -> str:
    form = """\
  <main><h1>Sign in</h1><p>This letter is for members. 请先登录。</p>
    <form action="/login" method="post"><label>Name <input name="user"></label>
      <label>Password <input type="password" name="password"></label><button>Sign in</button></form></main>"""
    return _document("Sign in", "en", "", form)


def private() -> str:
    return _document("Editors' desk", "en", "", "  <main><h1>Editors' desk</h1><p>For the staff only.</p></main>")


def captcha() -> str:
    """The page with status 200 that stands in the place of another one."""
    box = """\
  <div id="captcha-box"><h1>Please verify you are human 请完成安全验证</h1>
    <p>We noticed unusual traffic from your network. 检测到访问异常，请拖动滑块完成拼图后继续访问。</p>
    <div class="captcha-slider" data-sitekey="demo"></div></div>"""
    return _document("Security check 安全验证", "en", '  <meta name="robots" content="noindex">', box)


def _json_ld(facts: dict[str, object]) -> str:
    text = json.dumps({"@context": "https://schema.org", **facts}, ensure_ascii=False).replace("</", "<\\/")
    return f'  <script type="application/ld+json">{text}</script>'


def _document(title: str, lang: str, head: str, body: str) -> str:
    return f"""\
<!DOCTYPE html>
<html lang="{"zh-CN" if lang == "zh" else "en"}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{escape(title)} - {_SITE[lang]}</title>
  <link rel="alternate" type="application/rss+xml" href="/feed.xml">
{head}
</head>
<body>
  <nav><a href="/">Home</a> <a href="/news/">News 新闻</a> <a href="/shop/">Shop 商店</a></nav>
{body}
  <footer>Saltmere Harbour Press 盐湾港出版社 <a href="/private/desk">Staff</a></footer>
</body>
</html>
"""
