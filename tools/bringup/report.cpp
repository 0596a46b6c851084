// SPDX-License-Identifier: MIT
// The results as JSON, TAP, JUnit and a page.
#include <nlohmann/json.hpp>

#include "lib/output.h"
#include "runner.h"

namespace enpu::bringup {
namespace {

using tools::escaped;
using tools::format;

std::string commented(const std::string& text) {
    std::string out = "# ";
    for (const char c : text) {
        out += c;
        if (c == '\n') out += "# ";
    }
    return out + "\n";
}

}  // namespace

nlohmann::ordered_json results_json(const std::string& device,
                                    const std::vector<StageResult>& results) {
    nlohmann::ordered_json stages = nlohmann::json::array();
    for (const StageResult& result : results)
        stages.push_back(
            {{"stage", result.stage},
             {"lane", result.lane},
             {"verdict", verdict_name(result.verdict)},
             {"proves", result.proves},
             {"reason", result.reason},
             {"likely_causes", result.verdict == Verdict::kFailed ? result.causes : ""},
             {"evidence", result.evidence},
             {"seconds", result.seconds}});
    return {{"device", device}, {"ok", !failed(results)}, {"stages", stages}};
}

std::string results_tap(const std::vector<StageResult>& results) {
    std::string out = format("TAP version 14\n1..%zu\n", results.size());
    for (size_t i = 0; i < results.size(); ++i) {
        const StageResult& result = results[i];
        const bool bad = result.verdict == Verdict::kFailed;
        out += format("%sok %zu - %s (%s)", bad ? "not " : "", i + 1, result.stage.c_str(),
                      result.lane.c_str());
        if (result.verdict == Verdict::kSkipped) out += " # SKIP " + result.reason;
        out += '\n';
        if (bad)
            out += commented(result.reason + "\nlikely: " + result.causes + "\n" + result.evidence);
    }
    return out;
}

std::string results_junit(const std::vector<StageResult>& results) {
    size_t failures = 0, skipped = 0;
    for (const StageResult& result : results) {
        failures += result.verdict == Verdict::kFailed;
        skipped += result.verdict == Verdict::kSkipped;
    }
    std::string out = format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bringup\" tests=\"%zu\" "
        "failures=\"%zu\" skipped=\"%zu\">\n",
        results.size(), failures, skipped);
    for (const StageResult& result : results) {
        out += format("  <testcase classname=\"bringup.%s\" name=\"%s\" time=\"%.3f\">",
                      result.lane.c_str(), result.stage.c_str(), result.seconds);
        if (result.verdict == Verdict::kFailed)
            out += "<failure message=\"" + escaped(result.reason) + "\">" +
                   escaped(result.evidence) + "</failure>";
        if (result.verdict == Verdict::kSkipped)
            out += "<skipped message=\"" + escaped(result.reason) + "\"/>";
        out += "</testcase>\n";
    }
    return out + "</testsuite>\n";
}

std::string results_html(const std::string& device, const std::vector<StageResult>& results) {
    std::string out =
        "<!doctype html><meta charset=\"utf-8\"><title>enpu bringup</title><style>"
        "body{font:15px sans-serif;margin:2em;max-width:70em}td,th{padding:.3em "
        ".8em;text-align:left;"
        "vertical-align:top;border-top:1px solid #ccc}.passed{color:#070}.failed{color:#b00;"
        "font-weight:bold}.skipped{color:#777}pre{background:#f4f4f4;padding:.6em;overflow:auto}"
        "</style><h1>Bring-up of " +
        escaped(device) +
        "</h1><table><tr><th>stage<th>lane<th>result<th>s<th>proves, or why not</tr>";
    for (const StageResult& result : results) {
        const char* verdict = verdict_name(result.verdict);
        out += format("<tr><td>%s<td>%s<td class=\"%s\">%s<td>%.2f<td>", result.stage.c_str(),
                      result.lane.c_str(), verdict, verdict, result.seconds);
        out += escaped(result.verdict == Verdict::kPassed ? result.proves : result.reason);
        if (result.verdict == Verdict::kFailed)
            out += "<p>Likely: " + escaped(result.causes) + "<pre>" + escaped(result.evidence) +
                   "</pre>";
        out += "</tr>\n";
    }
    return out + "</table>\n";
}

}  // namespace enpu::bringup
