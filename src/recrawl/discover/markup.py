"""The bodies of sitemaps and feeds as well-behaved text: unpacked, decoded and mended, a chunk at a time.

Everything here is a stream, so that memory stays flat however large or hostile a body is, and says in `Problems` what
it had to give up or guess.
"""

from __future__ import annotations

import codecs
import gzip
import html
import html.entities
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

MOST_BYTES: Final = 50 * 1024 * 1024  # of a decompressed sitemap, sitemaps.org protocol 0.9
CHUNK: Final = 1 << 16
_MOST_PROBLEMS: Final = 20
_MAGIC: Final = b"\x1f\x8b"


class Problems:
    """What was wrong with a document, in sentences, and whether anything that it says may be missing."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.complete = True

    def note(self, text: str) -> None:
        """Something odd that costs nothing."""
        if text not in self.texts and len(self.texts) < _MOST_PROBLEMS:
            self.texts.append(text)

    def lost(self, text: str) -> None:
        """Something that may have cost an entry: nothing may be concluded from what is absent."""
        self.complete = False
        self.note(text)


def unpacked(data: bytes, problems: Problems, most: int = MOST_BYTES) -> Iterator[bytes]:
    """The bytes of a body in chunks, decompressed where it is gzip (RFC 1952, all members) whatever its name says.

    Reading stops at `most` decompressed bytes, and at damage; what came before is kept.
    """
    if not data.startswith(_MAGIC):
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]
        return
    source = gzip.GzipFile(fileobj=io.BytesIO(data))
    left = most
    chunk = bytearray()
    try:
        while piece := source.read1(min(CHUNK, left + 1)):
            chunk += piece[:left]
            left -= len(piece)
            if left < 0:
                problems.lost(f"The body is more than {most:,} bytes when decompressed; the rest was not read.")
                break
            if len(chunk) >= CHUNK:
                yield bytes(chunk)
                chunk.clear()
    except EOFError:
        problems.lost("The gzip stream ends too early.")
    except (OSError, zlib.error) as error:
        problems.lost(f"The gzip stream is damaged: {error}.")
    if chunk:
        yield bytes(chunk)


_DECLARED = re.compile(rb"^\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([\w.:-]{1,40})[\"']", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_TEXT_CODECS = re.compile(r"utf-8|ascii|iso8859-\d+|cp125\d|koi8-[ru]|gb|big5|cp9\d\d|euc_|shift_jis|mac-|tis-620")
_MARKS: Final = (  # longest first: the UTF-32 mark begins with that of UTF-16
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
    *((b"<\0\0\0", "utf-32-le"), (b"\0\0\0<", "utf-32-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")),
)


def charset(head: bytes, content_type: str | None) -> str:
    """The codec of a body: its mark, the header's charset, its XML declaration, UTF-8 (RFC 7303 section 3.2).

    Bytes beyond ASCII that are valid UTF-8 are UTF-8 whatever a label says, for that does not happen by chance.
    """
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if not head.isascii() and _is_utf8(head):
        return "utf-8"
    in_header = _CHARSET.search(content_type or "")
    in_body = _DECLARED.match(head)
    labels = (in_header and in_header[1], in_body and in_body[1].decode("ascii", "ignore"))
    return next(filter(None, map(_codec, labels)), "utf-8")


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _codec(label: str | None) -> str | None:
    try:
        name = codecs.lookup(label or "").name
    except LookupError:
        return None
    # Bytes in which a label could be read are no UTF-16, and Latin-1 is Windows-1252 to the whole web (WHATWG).
    if not _TEXT_CODECS.match(name):
        return None
    return {"iso8859-1": "cp1252", "ascii": None}.get(name, name)


def decoded(chunks: Iterable[bytes], content_type: str | None, problems: Problems) -> Iterator[str]:
    """Text of encoded chunks. Bytes that do not belong to the encoding become lone surrogates (PEP 383)."""
    stream = iter(chunks)
    head = next(stream, b"")
    codec = charset(head, content_type)
    errors = "replace" if codec.startswith(("utf-16", "utf-32")) else "surrogateescape"
    decoder = codecs.getincrementaldecoder(codec)(errors)
    for chunk in chain((head,), stream):
        if text := decoder.decode(chunk):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


_FORBIDDEN: Final = bytes(set(range(32)) - set(b"\t\n\r"))
_STRAY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_OPENING = re.compile(r"<!\[CDATA\[|<!--|<\?")
_CLOSING: Final = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
_BAD_REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});)(?:([A-Za-z]\w{0,31});)?")
_PATIENCE: Final = 1 << 20


def as_url_escape(stray: str) -> str:
    """A byte that is no text, as a URL shows it."""
    return f"%{ord(stray) & 0xFF:02X}"


def as_text(stray: str) -> str:
    """A byte that is no text, as Windows would have meant it; control characters vanish."""
    code = ord(stray)
    return bytes([code - 0xDC00]).decode("cp1252", "ignore") if 0xDC80 <= code <= 0xDCFF else ""


def cleaned(text: str, stray: Callable[[str], str], problems: Problems) -> bytes:
    """UTF-8 of a text, in which `stray` has replaced what is no character of XML 1.0 (section 2.2)."""
    try:
        raw = text.encode()
        if len(raw.translate(None, _FORBIDDEN)) == len(raw):
            return raw
    except UnicodeEncodeError:
        pass
    problems.lost("There are bytes that are no text in the document's encoding.")
    return _STRAY.sub(lambda match: stray(match[0]), text).encode()


def legal(text: str) -> str:
    """A text without the characters that XML forbids: they can still come by number, as in &#xFFFE;."""
    return _STRAY.sub("", text)


class Mender:
    """Makes XML that a parser can read of XML as people write it, and reports what it had to change.

    Bare ampersands become text, entities that only HTML knows become their characters, and characters that XML forbids
    become what `stray` makes of them. Other entities stay if `keep_entities`, else U+FFFD stands in their place. CDATA
    sections, comments and instructions are left alone.
    """

    def __init__(self, problems: Problems, *, stray: Callable[[str], str], keep_entities: bool = False) -> None:
        self._problems = problems
        self._stray = stray
        self._keep_entities = keep_entities
        self._until = ""  # what ends the section that the last chunk ended in

    def mended(self, chunks: Iterable[str]) -> Iterator[bytes]:
        """Mended UTF-8. Each chunk ends behind a `>`; a last piece that does not is cut off as unfinished."""
        carry = ""
        for chunk in chunks:
            text = carry + chunk
            end = text.rfind(">") + 1 or (len(text) if len(text) > _PATIENCE else 0)
            text, carry = text[:end], text[end:]
            if text:
                yield cleaned(self._with_good_references(text), self._stray, self._problems)
        if carry.strip("\0 \t\r\n"):
            self._problems.lost("The document ends in the middle of its text.")

    def _with_good_references(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        while at < len(text):
            if self._until:
                end = text.find(self._until, at)
                stop = len(text) if end < 0 else end + len(self._until)
                parts.append(text[at:stop])
                at = stop
                if end < 0:
                    break
                self._until = ""
            opening = _OPENING.search(text, at)
            stop = opening.start() if opening else len(text)
            parts.append(_BAD_REFERENCE.sub(self._reference, text[at:stop]))
            at = stop
            if opening:
                self._until = _CLOSING[opening[0].upper()]
                parts.append(opening[0])
                at = opening.end()
        return "".join(parts)

    def _reference(self, match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            self._problems.lost("There is an ampersand that is not written as &amp;.")
            return "&amp;"
        if meant := html.entities.html5.get(f"{name};"):
            self._problems.note(f"The entity &{name}; is not defined in XML.")
            return html.escape(meant)
        if self._keep_entities:
            return match[0]
        self._problems.lost(f"The entity &{name}; was not expanded.")
        return "\ufffd"
