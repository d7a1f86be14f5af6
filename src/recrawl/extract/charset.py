"""Which characters a body's bytes are."""


def decode(body: bytes, content_type: str | None) -> str:
    return body.decode("utf-8", "replace")
