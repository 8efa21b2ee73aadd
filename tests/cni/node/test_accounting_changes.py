"""From any state of the mangle table, the changes lead to every rule once and touch no correct rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cni.node import shaping
from cni.node.accounting import ALWAYS, HOOKS, all_rules, chain, ranges, table_changes
from cni.node.settings import Settings

SETTINGS = Settings("native", ("10.0.0.0/8",), ("10.0.0.0/8", "10.9.0.0/16"), "10.255.0.0/16", True, 1500, 30, 3, None)
RULES = all_rules(SETTINGS)
FOREIGN = ("-A FORWARD -s 10.9.9.9/32 -j ACCEPT", "-A INPUT -p tcp -j ACCEPT", "-A GPUFLEET-INPUT-IN -j RETURN", "-A POSTROUTING -j ACCEPT")
GUESTS = shaping.class_rules("eth0")
OWN_CHAINS = [chain(*hook) for hook in HOOKS]


class Table:
    """The mangle table as the kernel has it: rules by chain, of which each keeps its identity and so its count."""

    def __init__(self, rules: list[str]) -> None:
        self.chains: dict[str, list[tuple[str, int]]] = {name: [] for name in ("INPUT", "FORWARD", "OUTPUT", "POSTROUTING")}
        self.made = 0
        for rule in rules:
            self.append(rule)

    def append(self, rule: str, place: int | None = None) -> None:
        self.made += 1
        rows = self.chains.setdefault(rule.split()[1], [])
        rows.insert(len(rows) if place is None else place, (rule, self.made))

    def listing(self) -> str:
        own = [f"-N {name}" for name in self.chains if name.startswith("GPUFLEET")]
        return "\n".join([*own, *(rule for rows in self.chains.values() for rule, _ in rows), ""])

    def restore(self, lines: list[str]) -> None:
        """Apply lines as iptables-restore --noflush does."""
        for line in lines:
            words = line.split(" ", 3)
            if line.startswith(":"):
                self.chains[line.split()[0][1:]] = []
            elif words[0] == "-D":
                del self.chains[words[1]][int(words[2]) - 1]
            elif words[0] == "-I":
                self.append(f"-A {words[1]} {words[3]}", int(words[2]) - 1)
            else:
                self.append(line)


@given(st.lists(st.sampled_from((*RULES, *FOREIGN, *GUESTS)), max_size=120))
def test_mending_leaves_every_rule_once_and_keeps_each_that_was_right(rules: list[str]) -> None:
    table = Table(rules)
    before = {rule: number for rows in reversed(table.chains.values()) for rule, number in reversed(rows)}
    table.restore(table_changes(table.listing(), RULES))
    after = [row for rows in table.chains.values() for row in rows]
    texts = [rule for rule, _ in after]
    assert all(texts.count(rule) == 1 for rule in RULES)
    assert all((rule, before[rule]) in after for rule in RULES if rule in before)
    assert [rule for rule in texts if rule in FOREIGN and "GPUFLEET" not in rule] == [
        rule for name in table.chains for rule in rules if rule in FOREIGN and "GPUFLEET" not in rule and rule.split()[1] == name
    ]
    assert not [rule for rule in texts if rule.split()[1] in OWN_CHAINS and rule not in (*RULES, *GUESTS)]
    assert [texts.count(guest) for guest in GUESTS] == [rules.count(guest) for guest in GUESTS]
    assert table_changes(table.listing(), RULES) == []


@given(st.lists(st.sampled_from(RULES), max_size=80))
def test_in_a_chain_of_ours_the_pods_are_counted_last(rules: list[str]) -> None:
    table = Table(list(dict.fromkeys(rules)))
    fresh = Table([])
    for each in (table, fresh):
        each.restore(table_changes(each.listing(), RULES))
    for direction in ("out", "in"):
        assert "--match-set" in fresh.chains[chain("FORWARD", direction)][-1][0]


def test_a_rule_that_is_there_in_other_words_is_not_given_again() -> None:
    listing = Table([rule for rule in RULES if rule != ALWAYS[0]]).listing() + "-A INPUT in other words\n"
    assert table_changes(listing, RULES) == [ALWAYS[0]]
    assert table_changes(listing, RULES, frozenset({ALWAYS[0]})) == []


def test_ranges_inside_others_are_not_counted_again() -> None:
    given = ("10.0.0.0/8", "10.1.0.0/16", "172.16.5.0/24", "203.0.113.0/25", "203.0.113.128/25", "fd00::/8")
    settings = Settings("native", ("10.0.0.0/8",), given, "10.255.0.0/16", True, 1500, 30, 3, None)
    assert [row for row in ranges(settings) if row not in ranges(SETTINGS)] == [("peered-203.0.113.0/24", "203.0.113.0/24")]
