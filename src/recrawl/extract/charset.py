"""Which characters the bytes of a body are: the HTML standard's rules (section 13.2.3), for other text too."""

from __future__ import annotations

import codecs
import re

from recrawl.extract import prescan
from recrawl.extract.labels import GB18030, UTF_8, WINDOWS_1252, codec_of

_CHARSET = re.compile(r';\s*charset\s*=\s*(?:"([^"]*)"|([^;]*))', re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le"))

# What makes up a seventh of any Chinese text, and next to nothing of other text that is taken for GB18030.
# Without the full stop, which EUC-JP has at the same place.
_FREQUENT = "的一是不了有在人我他这中大来上个国和地到以说时要就出会可也你对生能而子那得于着下自之年，"
_SAMPLE = 64 * 1024
_SHARE = 0.04
_LEAST = 10  # characters


def decode(body: bytes, content_type: str | None) -> str:
    """A body as text; bytes that mean nothing become U+FFFD, nothing is raised.

    By the first of: a byte order mark, the charset of `content_type`, what an HTML or XML document says of itself,
    UTF-8 if it is valid, what a misspelt meta element says, GB18030 if it reads as Chinese, windows-1252.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    named = _of_header(content_type) or _of_document(body, content_type)
    if named is None:
        try:
            return body.decode(UTF_8)
        except UnicodeDecodeError:
            guess = GB18030 if _reads_as_chinese(body) else WINDOWS_1252
            named = prescan.misspelt(body[: prescan.LENGTH]) or guess
    return body.decode(named, _CONTROLS if named.startswith("cp125") else "replace")


def _of_header(content_type: str | None) -> str | None:
    found = _CHARSET.search(content_type or "")
    return codec_of(found[1] if found[1] is not None else found[2]) if found else None


def _of_document(body: bytes, content_type: str | None) -> str | None:
    kind = (content_type or "").partition(";")[0].strip().lower()
    head = body[: prescan.LENGTH]
    if kind.endswith(("/xml", "+xml")) and not kind.startswith("application/xhtml"):
        return prescan.utf_16(head) or prescan.xml_declared(head)
    return prescan.declared(head) if "html" in kind or "/" not in kind else None


def _reads_as_chinese(body: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder(GB18030)().decode(body[:_SAMPLE])
    except UnicodeDecodeError:
        return False
    beyond = sum(c > "\x7f" for c in text)
    return beyond >= _LEAST and sum(map(text.count, _FREQUENT)) >= _SHARE * beyond


def _keep_control(error: UnicodeError) -> tuple[str, int]:
    """The web's windows code pages have the control characters of latin-1 where Python's have gaps."""
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    return (chr(byte) if byte < 0xA0 else "\ufffd"), error.start + 1


_CONTROLS = "recrawl.controls"
codecs.register_error(_CONTROLS, _keep_control)
