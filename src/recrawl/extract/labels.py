"""Names of character encodings as the web writes them, and what they really mean (WHATWG Encoding standard, 4.2).

The names are wider than they say: pages labelled latin-1 are windows-1252, pages labelled gb2312 are GB18030.
"""

from __future__ import annotations

UTF_8 = "utf-8"
WINDOWS_1252 = "cp1252"
GB18030 = "gb18030"

# Python's codec, then the labels that mean it.
_LABELS = {
    UTF_8: "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    WINDOWS_1252: (
        "windows-1252 cp1252 x-cp1252 ascii us-ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso88591 iso_8859-1"
        " iso_8859-1:1987 iso-ir-100 latin1 latin-1 l1 cp819 ibm819 csisolatin1"
    ),
    GB18030: (
        "gb18030 gbk gb2312 gb_2312 gb_2312-80 gb-2312 x-gbk cp936 ms936 chinese csgb2312 csiso58gb231280 iso-ir-58"
    ),
    "hz": "hz-gb-2312",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5 big-5",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis cp932",
    "euc_jis_2004": "euc-jp x-euc-jp cseucpkdfmtjapanese",
    "iso2022_jp_ext": "iso-2022-jp csiso2022jp",
    "cp949": (
        "euc-kr cseuckr ksc5601 ksc_5601 ks_c_5601-1987 ks_c_5601-1989 csksc56011987 korean windows-949 cp949"
        " iso-ir-149"
    ),
    "iso2022_kr": "iso-2022-kr csiso2022kr",
    "utf-16-le": "utf-16 utf-16le ucs-2 unicode csunicode iso-10646-ucs-2 unicodefeff",
    "utf-16-be": "utf-16be unicodefffe",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1253": "windows-1253 cp1253 x-cp1253",
    "cp1254": (
        "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 iso-ir-148 latin5 l5"
        " csisolatin5"
    ),
    "cp1255": "windows-1255 cp1255 x-cp1255",
    "cp1256": "windows-1256 cp1256 x-cp1256",
    "cp1257": "windows-1257 cp1257 x-cp1257",
    "cp1258": "windows-1258 cp1258 x-cp1258",
    "cp874": "windows-874 dos-874 tis-620 iso-8859-11 iso8859-11 iso885911",
    "cp866": "ibm866 cp866 866 csibm866",
    "koi8_r": "koi8-r koi8 koi koi8_r cskoi8r",
    "koi8_u": "koi8-u koi8-ru",
    "mac_roman": "macintosh mac x-mac-roman csmacintosh",
    "mac_cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "iso8859_2": "iso-8859-2 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 iso-ir-101 latin2 l2 csisolatin2",
    "iso8859_3": "iso-8859-3 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 iso-ir-109 latin3 l3 csisolatin3",
    "iso8859_4": "iso-8859-4 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 iso-ir-110 latin4 l4 csisolatin4",
    "iso8859_5": "iso-8859-5 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 iso-ir-144 cyrillic csisolatincyrillic",
    "iso8859_6": (
        "iso-8859-6 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 iso-8859-6-e iso-8859-6-i iso-ir-127 arabic"
        " asmo-708 ecma-114 csisolatinarabic csiso88596e csiso88596i"
    ),
    "iso8859_7": (
        "iso-8859-7 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 iso-ir-126 greek greek8 ecma-118 elot_928"
        " sun_eu_greek csisolatingreek"
    ),
    "iso8859_8": (
        "iso-8859-8 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 iso-8859-8-e iso-8859-8-i iso-ir-138 hebrew visual"
        " logical csisolatinhebrew csiso88598e csiso88598i"
    ),
    "iso8859_10": "iso-8859-10 iso8859-10 iso885910 iso-ir-157 latin6 l6 csisolatin6",
    "iso8859_13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859_14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859_15": "iso-8859-15 iso8859-15 iso885915 iso_8859-15 latin9 latin-9 l9 csisolatin9",
    "iso8859_16": "iso-8859-16",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}


def codec_of(label: str) -> str | None:
    """The Python codec for a label, or None for a label that the web does not know."""
    return _CODECS.get(label.strip("\t\n\f\r ").lower())
