# SPDX-License-Identifier: MIT
"""Finds in the guest's kernel log what must not be there."""
import re

# Words of the kernel's own alarms.
ALARMS = re.compile(
    r"\bBUG:|\bWARNING:|\bOops:|KASAN:|KCSAN:|KFENCE:|UBSAN:|possible (circular|recursive) locking|refcount_t:|Call Trace:|"
    r"blocked for more than|rcu: INFO:|rcu_\w+ detected|soft lockup|hard LOCKUP|general protection fault|Kernel panic|"
    r"scheduling while atomic|sleeping function called|Bad page|unable to handle|INFO: task|INFO: possible|"
    r"suspicious RCU|kmemleak: \d+ new|hung task|DEBUG_LOCKS_WARN_ON|"
    r"Refused to change power state")
# A raw line: <level>[time] text. Level is facility * 8 + priority; priority 3 and lower are errors.
RAW = re.compile(r"^<(\d+)>\[\s*([\d.]+)\]\s?(.*)$")
OURS = re.compile(r"\benpu\b")


def parse(raw):
    """(priority, text) per line of a raw kernel log; continuation lines keep the last priority."""
    priority = 6
    for line in raw.splitlines():
        match = RAW.match(line)
        if match:
            priority, line = int(match.group(1)) & 7, match.group(3)
        if line.strip():
            yield priority, line


def findings(raw, allowed=()):
    """Lines of the log that are alarms or errors of our driver and match none of the allowed expressions."""
    allow = [re.compile(a) for a in allowed]
    found = []
    for priority, text in parse(raw):
        if any(a.search(text) for a in allow):
            continue
        if ALARMS.search(text) or (priority <= 3 and OURS.search(text)):
            found.append(text)
    return found
