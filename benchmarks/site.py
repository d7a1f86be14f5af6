"""The site that is crawled: static files and generated items behind a local nginx, started and stopped here."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ITEMS = 200_000
_PER_SITEMAP = 50_000  # the most that sitemaps.org allows
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'

# `max-age=0` makes a cache ask each time. An item is made of its address, so that 200,000 of them need no files; a
# page of its own for each, as equal ones would look like one error page.
_CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; text/xml xml; text/plain txt; }}
    default_type application/octet-stream;
    access_log off;
    etag on;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    open_file_cache max=10000 inactive=1h;
    open_file_cache_valid 1s;
    client_body_temp_path {folder}/temporary;
    proxy_temp_path {folder}/temporary;
    fastcgi_temp_path {folder}/temporary;
    uwsgi_temp_path {folder}/temporary;
    scgi_temp_path {folder}/temporary;
    add_header Cache-Control "max-age=0";
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location /item/ {{
            default_type text/html;
            return 200 "<!doctype html><title>Item $uri</title><h1>$uri</h1><p>An item named $uri, in a few words.</p>";
        }}
        location /fresh/ {{
            default_type text/html;
            return 200 "<!doctype html><title>Item $uri of $msec</title><p>An item that is another one each time.</p>";
        }}
        location = /server-status {{ stub_status; }}
    }}
}}
"""


@dataclass(slots=True)
class Site:
    """A running site. `pages` are the URLs of the corpus, in the order of its sitemap."""

    origin: str
    root: Path
    pages: Sequence[str]
    _asked: int = 0

    @property
    def page_sitemap(self) -> str:
        """Lists the pages without lastmod: only asking each page tells whether it changed."""
        return f"{self.origin}/pages.xml"

    @property
    def item_sitemap(self) -> str:
        """An index of four sitemaps that list 200,000 items with their lastmod."""
        return f"{self.origin}/items.xml"

    def requests(self) -> int:
        """Requests that the server has answered so far, those of this method left out."""
        with urllib.request.urlopen(f"{self.origin}/server-status") as answer:
            found = re.search(r"requests\s+\d+\s+\d+\s+(\d+)", answer.read().decode())
        assert found is not None
        self._asked += 1
        return int(found[1]) - self._asked

    def write_item_sitemaps(self, edition: int) -> None:
        """Write the sitemaps of the items anew: other bytes for each edition, the same lastmods."""
        parts = range(0, ITEMS, _PER_SITEMAP)
        for start in parts:
            entries = (
                f"<url><loc>{self.origin}/item/{number}</loc><lastmod>2026-01-{number % 28 + 1:02}</lastmod></url>"
                for number in range(start, start + _PER_SITEMAP)
            )
            write_sitemap(self.root / f"items-{start}.xml", "urlset", entries, comment=f"edition {edition}")
        listed = (f"<sitemap><loc>{self.origin}/items-{start}.xml</loc></sitemap>" for start in parts)
        write_sitemap(self.root / "items.xml", "sitemapindex", listed, comment=f"edition {edition}")


def write_sitemap(path: Path, element: str, entries: Iterable[str], comment: str = "") -> None:
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {comment} -->\n<{element} {_NAMESPACE}>\n'
    path.write_text(head + "\n".join(entries) + f"\n</{element}>\n")


@contextmanager
def serving(root: Path, folder: Path, paths: Sequence[str]) -> Iterator[Site]:
    """Serve `paths`, which lie below `root`, on a free port of 127.0.0.1; the server's own files go to `folder`."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise SystemExit("this benchmark needs nginx: apt-get install nginx-light")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = _free_port()
    site = Site(f"http://127.0.0.1:{port}", root, [f"http://127.0.0.1:{port}/{path}" for path in paths])
    (root / "robots.txt").write_text(f"User-agent: *\nDisallow:\nSitemap: {site.page_sitemap}\n")
    write_sitemap(root / "pages.xml", "urlset", (f"<url><loc>{url}</loc></url>" for url in site.pages))
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, root=root, port=port, user=_user()))
    server = subprocess.Popen([program, "-c", config, "-e", folder / "error.log"])
    try:
        _wait_for(server, port)
        yield site
    finally:
        server.terminate()
        server.wait()


def _user() -> str:
    """Started by root, nginx would read the files as somebody else; started by others, it refuses this line."""
    if os.getuid():
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(100):
        if server.poll() is not None:
            raise SystemExit("nginx ended at once: see error.log in its folder")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("nginx does not answer")
