"""What a user writes: sources, finders, records, fields and policies. Values only."""

from recrawl.declare.api import Api, Since
from recrawl.declare.article import Article
from recrawl.declare.fields import css, jmes, jsonld, meta, names, xpath
from recrawl.declare.finders import Auto, Derived, Feed, Finder, Links, Listing, Sitemap, Urls
from recrawl.declare.paging import AfterId, NextLink, NextToken, Offset, PageNumber
from recrawl.declare.planned import Keywords
from recrawl.declare.policies import Adaptive, Budget, Deletion, Failing, Identity, Pace
from recrawl.declare.record import Record
from recrawl.declare.secrets import Basic, Bearer, env
from recrawl.declare.source import Source, from_url
from recrawl.declare.values import Count, Moment, Precision, Price, Stock, Text, Url, Volatile

__all__ = [
    "Adaptive",
    "AfterId",
    "Api",
    "Article",
    "Auto",
    "Basic",
    "Bearer",
    "Budget",
    "Count",
    "Deletion",
    "Derived",
    "Failing",
    "Feed",
    "Finder",
    "Identity",
    "Keywords",
    "Links",
    "Listing",
    "Moment",
    "NextLink",
    "NextToken",
    "Offset",
    "Pace",
    "PageNumber",
    "Precision",
    "Price",
    "Record",
    "Since",
    "Sitemap",
    "Source",
    "Stock",
    "Text",
    "Url",
    "Urls",
    "Volatile",
    "css",
    "env",
    "from_url",
    "jmes",
    "jsonld",
    "meta",
    "names",
    "xpath",
]
