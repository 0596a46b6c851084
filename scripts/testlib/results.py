# SPDX-License-Identifier: MIT
"""Cases of all lanes in one list; reads JUnit and TAP, writes tests.json and junit.xml."""
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Case:
    lane: str
    level: str
    suite: str
    name: str
    status: str
    seconds: float = 0.0
    reason: str = ""


def from_junit(text, lane, level, suite):
    """Cases of a Catch2 JUnit report; raises ET.ParseError for a truncated one (the test died)."""
    cases = []
    for item in ET.fromstring(text).iter("testcase"):
        status, reason = PASSED, ""
        for tag, kind in (("failure", FAILED), ("error", FAILED), ("skipped", SKIPPED)):
            found = item.find(tag)
            if found is not None:
                status = kind
                reason = reason_of(found, kind)
                break
        cases.append(Case(lane, level, suite, item.get("name") or "?", status, float(item.get("time") or 0), reason[:2000]))
    return merged(cases)


def reason_of(element, kind):
    lines = ((element.get("message") or "") + "\n" + (element.text or "")).strip().splitlines()
    if kind == SKIPPED:
        lines = [line for line in lines if line not in ("SKIPPED", "FAILED:") and not line.startswith("at /")]
        return " ".join(line.strip() for line in lines if line.strip())
    return "\n".join(lines)


def merged(cases):
    """Catch2 reports each section of a case by itself, as CASE/SECTION; they count as one, which fails if any of them does."""
    by_name = {}
    for case in cases:
        whole = next((n for n in by_name if case.name == n or case.name.startswith(n + "/")), None)
        if whole is None:
            by_name[case.name] = case
            continue
        known = by_name[whole]
        known.seconds += case.seconds
        if case.status == FAILED and known.status != FAILED:
            known.status, known.reason = FAILED, f"{case.name}: {case.reason}"
        elif known.status == SKIPPED and case.status == PASSED:
            known.status, known.reason = PASSED, ""
    return list(by_name.values())


TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*# (skip|todo)\b:?\s*(.*))?$", re.IGNORECASE)
TAP_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*# skip\w*\s*(.*))?", re.IGNORECASE)


def from_tap(text, lane, level, suite):
    """Cases of TAP output; a plan that promises more than came is a failed case of its own."""
    cases, plan, notes = [], None, []
    for line in text.splitlines():
        if match := TAP_PLAN.match(line):
            plan = int(match.group(1))
            if plan == 0:
                cases.append(Case(lane, level, suite, "all", SKIPPED, 0, match.group(2) or "nothing to run"))
        elif match := TAP_LINE.match(line):
            status = FAILED if match.group(1) else PASSED
            reason = "\n".join(notes)[-1500:] if status == FAILED else ""
            if (match.group(3) or "").lower() == "skip":
                status, reason = SKIPPED, match.group(4) or ""
            cases.append(Case(lane, level, suite, match.group(2) or "?", status, 0, reason))
            notes = []
        elif line.startswith("#"):
            notes.append(line[1:].strip())
    if plan and len(cases) < plan:
        cases.append(Case(lane, level, suite, "plan", FAILED, 0, f"{plan} cases were planned, {len(cases)} came"))
    return cases


def has_tap(text):
    return any(TAP_LINE.match(line) for line in text.splitlines())


def count(cases, status):
    return sum(1 for c in cases if c.status == status)


def write(folder, cases, seconds):
    folder.mkdir(parents=True, exist_ok=True)
    summary = {s: count(cases, s) for s in (PASSED, FAILED, SKIPPED)}
    document = {"summary": summary, "seconds": round(seconds, 1), "cases": [asdict(c) for c in cases]}
    (folder / "tests.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    root = ET.Element("testsuites", tests=str(len(cases)), failures=str(summary[FAILED]), skipped=str(summary[SKIPPED]))
    suites = {}
    for case in cases:
        key = (case.lane, case.suite)
        if key not in suites:
            suites[key] = ET.SubElement(root, "testsuite", name=f"{case.lane}.{case.suite}")
        item = ET.SubElement(suites[key], "testcase", classname=f"{case.level}.{case.suite}", name=printable(case.name),
                             time=f"{case.seconds:.3f}")
        if case.status == FAILED:
            ET.SubElement(item, "failure", message=printable(case.reason[:200])).text = printable(case.reason)
        elif case.status == SKIPPED:
            ET.SubElement(item, "skipped", message=printable(case.reason))
    for (lane, suite), element in suites.items():
        own = [c for c in cases if (c.lane, c.suite) == (lane, suite)]
        element.set("tests", str(len(own)))
        element.set("failures", str(count(own, FAILED)))
        element.set("skipped", str(count(own, SKIPPED)))
    ET.ElementTree(root).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)


def printable(text):
    """XML 1.0 knows no control characters."""
    return "".join(c for c in text if c in "\t\n\r" or ord(c) >= 32)
