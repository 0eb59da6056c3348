"""Words and characters so common that they say nothing of what a text is about, and names that have no stem."""

from __future__ import annotations

import re

WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing done down during each either else etc ever every few
    for from further get gets getting go goes going gone got had has have having he her here hers herself him
    himself his how however i if in into is it its itself just know let lets like made make makes many may maybe
    me might mine more most much must my myself neither no nor not now of off on once one only onto or other our
    ours ourselves out over own per please quite rather really said same say says see she should since so some
    still such take than that the their theirs them themselves then there these they thing things this those
    though through thus to too under until up upon us very was we well were what whatever when where whether
    which while who whom whose why will with within without would yes yet you your yours yourself
    ain aren couldn didn doesn don hadn hasn haven isn mustn needn shan shouldn wasn weren won wouldn
    s t re ve ll d m
    """,
    )
)

HAN = frozenset(
    "的了是在和有我你您他她它们这那些个哪么什谁吗呢吧啊呀与及或而且就都也很还又再被把对从到之其所以于为因但并"
    "着过给让向比更最太会能可要请没不一"
)

# Names of programs that the stemmer would cut although nothing is inflected in them.
NAMES = frozenset(
    re.findall(
        r"\w+",
        """
    redis postgres kubernetes jenkins ansible haproxy caddy celery prometheus elasticsearch kibana logstash
    traefik apache cassandra nagios zabbix varnish vagrant consul nomad vault docker podman solaris
    """,
    )
)
