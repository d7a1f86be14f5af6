"""Which characters a body's bytes are."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.extract.charset import decode
from recrawl.extract.labels import _LABELS, codec_of
from recrawl.extract.prescan import declared

HTML = "text/html"
CHINESE = "我们在这里说的是一个关于港口和潮水的故事，船都回来了。"
LABELS = [(codec, label) for codec, labels in _LABELS.items() for label in labels.split()]


# Bytes that mean nothing


@given(st.binary(), st.none() | st.text() | st.sampled_from(["text/html", "text/xml", "text/plain; charset=gbk"]))
def test_no_body_and_no_header_raises(body: bytes, content_type: str | None) -> None:
    assert not any("\ud800" <= c <= "\udfff" for c in decode(body, content_type))


@given(st.binary(), st.sampled_from([label for _, label in LABELS]))
def test_bytes_that_a_named_charset_does_not_have_are_replaced(body: bytes, label: str) -> None:
    decode(body, f"text/plain; charset={label}")


@given(
    st.lists(st.sampled_from([b"<meta ", b"<", b">", b"charset", b"=", b'"', b"'", b"gbk", b"<!--", b"/", b" ", b"x"]))
)
def test_any_heap_of_markup_is_scanned(pieces: list[bytes]) -> None:
    declared(b"".join(pieces))


@pytest.mark.parametrize(
    "piece",
    [b"<", b"<a ", b"<meta =", b'<meta a="', b"<!--", b"<?xml encoding", b"<meta content=charset", b"<meta a= "],
)
def test_scanning_takes_no_time_whatever_is_scanned(piece: bytes) -> None:
    body = b"<?xml " + piece * (1024 // len(piece))
    began = time.perf_counter()
    decode(body, HTML)
    assert time.perf_counter() - began < 0.2


def test_a_cut_character_is_one_replacement() -> None:
    assert decode("é".encode()[:1], "text/plain; charset=utf-8") == "\ufffd"
    assert decode("ab".encode("utf-16-le")[:3], "text/plain; charset=utf-16") == "a\ufffd"


# Order of what is believed


@pytest.mark.parametrize(
    ("mark", "codec"),
    [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
def test_a_mark_beats_everything_and_is_no_text(mark: bytes, codec: str) -> None:
    text = '<meta charset="gbk">潮'
    assert decode(mark + text.encode(codec), "text/html; charset=koi8-r") == text


def test_the_header_beats_the_document() -> None:
    body = '<meta charset="utf-8">潮'.encode("gbk")
    assert decode(body, "text/html; charset=gb2312").endswith("潮")


def test_the_document_beats_valid_utf_8() -> None:
    assert decode(b'<meta charset="windows-1252">' + "é".encode(), HTML).endswith("Ã©")


@pytest.mark.parametrize("content_type", ["text/html; charset=nonsense", "text/html; charset=", "text/html", "", None])
def test_an_unknown_header_leaves_it_to_the_document(content_type: str | None) -> None:
    assert decode('<meta charset="big5">潮'.encode("big5"), content_type).endswith("潮")


def test_what_names_nothing_and_is_valid_utf_8_is_utf_8() -> None:
    for content_type in (HTML, "text/plain", "application/json", "text/xml", None):
        assert decode("潮 é".encode(), content_type) == "潮 é"


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain;charset=gbk",
        'text/plain; charset="GBK"',
        "text/plain; format=flowed; Charset = gbk ",
        "TEXT/PLAIN ; charset=gb2312; x=y",
    ],
)
def test_the_charset_of_a_header_is_found(content_type: str) -> None:
    assert decode("潮水".encode("gbk"), content_type) == "潮水"


# Labels


@pytest.mark.parametrize(("codec", "label"), LABELS)
def test_every_label_has_a_codec(codec: str, label: str) -> None:
    assert codec_of(f" {label.upper()}\n") == codec
    assert decode("tide".encode(codec), f"text/plain; charset={label}") == "tide"


@pytest.mark.parametrize("label", ["", "utf-7", "utf-32", "rot13", "hex", "idna", "punycode", "unicode_escape", "mbcs"])
def test_a_label_that_the_web_does_not_know_means_nothing(label: str) -> None:
    assert codec_of(label) is None


@pytest.mark.parametrize(
    ("label", "body", "text"),
    [
        ("iso-8859-1", b"\x80 \x93x\x94 \x81", "€ “x” \x81"),
        ("us-ascii", b"\xe9", "é"),
        ("gb2312", "镕 㐂".encode("gb18030"), "镕 㐂"),
        ("euc-kr", "똠".encode("cp949"), "똠"),
        ("shift_jis", "①髙".encode("cp932"), "①髙"),
        ("big5", "啫".encode("big5hkscs"), "啫"),
        ("euc-jp", b"\xad\xa1\\~", "①\\~"),
        ("iso-8859-9", b"\x80\xfd", "€ı"),
        ("utf-16", "潮".encode("utf-16-le"), "潮"),
        ("windows-1253", b"\xd8\xd2", "Ψ\ufffd"),
    ],
)
def test_a_label_means_what_browsers_take_it_for(label: str, body: bytes, text: str) -> None:
    assert decode(body, f"text/html; charset={label}") == text


# What a document says of itself


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=gbk>",
        "<META CHARSET='GBK' >",
        '<meta charset = " gbk ">',
        "<meta/charset=gbk>",
        "<meta name=x charset=gbk/x charset=gbk>".replace("gbk/x ", "gbk "),
        '<meta http-equiv="Content-Type" content="text/html; charset=gb2312">',
        "<meta content='text/html;charset=\"gbk\"' http-equiv=content-type>",
        "<meta content=charset=gbk http-equiv=CONTENT-TYPE>",
        '<meta charset=nonsense><meta charset="gbk">',
        "<!-- <meta charset=big5> --><meta charset=gbk>",
        "<!--><meta charset=gbk>",
        "<!DOCTYPE html><?php > <html lang=zh><head/><title>a</title><meta charset=gbk>",
        "<a title='<meta charset=big5>'><meta charset=gbk>",
        "</p <meta charset=big5><meta charset=gbk>",
        "< meta charset=big5><meta charset=gbk>",
        "<metadata charset=big5><meta charset=gbk>",
        "<meta charset=gbk charset=big5>",
        "<meta = charset=gbk>",
        "<meta content='text/html; charset=big5' name=x><meta charset=gbk>",
        '<?xml version="1.0" encoding="gbk"?><html>',
        "<?xml encoding = 'GBK' ?><html>",
    ],
)
def test_a_document_names_its_charset(head: str) -> None:
    assert decode(f"{head}潮水".encode("gbk"), HTML) == f"{head}潮水"


@pytest.mark.parametrize(
    "head",
    [
        "<!-- <meta charset=gbk>",
        "<!-- <meta charset=gbk> -->",
        "<meta http-equiv=refresh content='1; charset=gbk'>",
        "<meta content='text/html; charset=gbk'>",
        "<meta http-equiv=content-type content='text/html; charset'>",
        "<meta http-equiv=content-type content='text/html; charset=\"gbk'>",
        "<meta charset=nonsense>",
        "<meta charset=utf-7>",
        "<meta charset='gbk",
        "<meta charset=gbk",
        "<meta data='x charset=gbk ",
        "<p title='<meta charset=gbk>",
        "<metacharset=gbk>",
        " " * 1020 + "<meta charset=gbk>",
        " " * 1008 + "<meta charset=gbk>",
        "<?xml version='1.0'?>",
        "<?xml encoding='g b k'?>",
        " <?xml encoding='gbk'?>",
    ],
)
def test_what_names_no_charset_is_not_taken_for_one(head: str) -> None:
    assert decode(f"{head}潮é".encode(), HTML) == f"{head}潮é"


@pytest.mark.parametrize("label", ["utf-16", "utf-16be", "utf-16le", "unicode"])
def test_a_meta_that_can_be_read_is_not_in_utf_16(label: str) -> None:
    head = f"<meta charset={label}>"
    assert decode(f"{head}潮".encode(), HTML) == f"{head}潮"


def test_x_user_defined_in_a_meta_is_windows_1252() -> None:
    assert decode(b"<meta charset=x-user-defined>\x80", HTML).endswith("€")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json", "text/csv", "text/xml", "application/rss+xml"]
)
def test_a_meta_in_what_is_no_html_is_text(content_type: str) -> None:
    text = '<x><![CDATA[<meta charset="gbk">]]>潮</x>'
    assert decode(text.encode(), content_type) == text


@pytest.mark.parametrize("content_type", ["text/xml", "application/xml", "application/atom+xml", HTML, None])
@pytest.mark.parametrize("codec", ["gbk", "shift_jis", "iso-8859-2"])
def test_an_xml_declaration_counts(content_type: str | None, codec: str) -> None:
    text = f'<?xml version="1.0" encoding="{codec}"?><a>水 é</a>'.encode(codec, "ignore")
    assert decode(text, content_type) == text.decode(codec)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("content_type", ["text/xml", HTML])
def test_xml_in_utf_16_without_a_mark_is_seen(codec: str, content_type: str) -> None:
    text = "<?xml version='1.0'?><a>潮</a>"
    assert decode(text.encode(codec), content_type) == text


# Guesses


@pytest.mark.parametrize("content_type", [HTML, "text/plain", None])
def test_what_reads_as_chinese_is_gb18030(content_type: str | None) -> None:
    body = CHINESE.encode("gb18030")
    assert decode(body, content_type) == CHINESE
    assert decode(body[:-1], content_type) == CHINESE[:-1] + "\ufffd"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Größe: 3 €, naïve façade, “quoted” – déjà vu, ÀÉÎÕÜ", "cp1252"),
        ("Быстрая лисица перепрыгнула через ленивую собаку", "koi8_r"),
        ("Быстрая лисица перепрыгнула через ленивую собаку", "cp1251"),
        ("다람쥐 헌 쳇바퀴에 타고파 그리고 나는 집에 간다", "cp949"),
        ("いろはにほへと散りぬるを、我が世誰ぞ常ならむ。", "euc_jp"),
        ("天地玄黃宇宙洪荒日月盈昃辰宿列張，寒來暑往。", "big5"),
        ("é", "cp1252"),
    ],
)
def test_other_text_is_not_taken_for_chinese(text: str, codec: str) -> None:
    body = text.encode(codec)
    assert decode(body, "text/plain") == "".join(
        bytes([byte]).decode("cp1252")
        if bytes([byte]) not in {b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"}
        else chr(byte)
        for byte in body
    )


def test_a_misspelt_meta_is_asked_where_nothing_better_tells() -> None:
    chinese = '<meta httpequiv="ContentType" content="text/html; charset=gbk"><title>中文</title>'
    assert decode(chinese.encode("gbk"), "text/html") == chinese
    assert decode(chinese.encode(), "text/html") == chinese, "what is UTF-8 is read as such"
    assert decode(chinese.encode("gbk"), "text/html; charset=windows-1252") != chinese
