// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/output.h"
#include "page_script.h"
#include "timeline.h"

namespace enpu::tools {
namespace {

using Json = nlohmann::ordered_json;

enum Kind { kJob, kCall, kBad, kInstant, kWaits };  // kWaits + Gap
constexpr const char* kKinds[] = {"job", "call", "bad", "instant", "host", "copy", "queue"};

// Names are many times the same: each once.
class Strings {
  public:
    size_t number(const std::string& text) {
        const auto [found, fresh] = numbers_.try_emplace(text, all_.size());
        if (fresh) all_.push_back(text);
        return found->second;
    }
    const std::vector<std::string>& all() const { return all_; }

  private:
    std::map<std::string, size_t> numbers_;
    std::vector<std::string> all_;
};

constexpr const char* kReasons[] = {"wait for the host: nothing was submitted", "wait for a copy",
                                    "wait for the queue: a dependency or the scheduler"};

Json lane_json(const Lane& lane, uint64_t begin_ns, Strings& strings) {
    Json boxes = Json::array();
    unsigned depth = 0;
    for (const LaneGap& gap : lane.gaps)
        boxes.push_back(
            {gap.from_ns - begin_ns, gap.to_ns - begin_ns, 0, kWaits + static_cast<int>(gap.reason),
             strings.number(kReasons[static_cast<int>(gap.reason)]), strings.number("")});
    for (const TraceSlice& slice : lane.slices) {
        depth = std::max(depth, slice.depth + 1);
        const Kind kind = slice.from_ns == slice.to_ns          ? kInstant
                          : slice.name.rfind("failed ", 0) == 0 ? kBad
                          : lane.busy                           ? kJob
                                                                : kCall;
        boxes.push_back({slice.from_ns - begin_ns, slice.to_ns - begin_ns, slice.depth,
                         static_cast<int>(kind), strings.number(slice.name),
                         strings.number(slice.note)});
    }
    return {{"name", lane.name}, {"depth", depth}, {"busy", lane.busy}, {"boxes", boxes}};
}

Json data_json(const Analysis& analysis) {
    Strings strings;
    Json lanes = Json::array(), series = Json::array();
    for (const Lane& lane : analysis.lanes)
        lanes.push_back(lane_json(lane, analysis.begin_ns, strings));
    for (const Series& one : analysis.series) {
        Json values = Json::array();
        for (const TraceValue& value : one.values)
            values.push_back({value.ns - analysis.begin_ns, value.value});
        series.push_back({{"name", one.name}, {"unit", one.unit}, {"values", values}});
    }
    return {{"begin_ns", analysis.begin_ns},
            {"end_ns", analysis.end_ns},
            {"kinds", kKinds},
            {"strings", strings.all()},
            {"lanes", lanes},
            {"series", series}};
}

// JSON inside a script: nothing in it may end the script.
std::string in_script(std::string text) {
    for (size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3)
        text.insert(at + 1, 1, '\\');
    return text;
}

std::string percent(double part, double whole) {
    return format("%.1f %%", whole > 0 ? 100 * part / whole : 0);
}

std::string lane_table(const Analysis& analysis) {
    std::string out =
        "<table id=\"lanes\"><tr><th>lane<th>spans<th>busy<th>of the time<th>waited for the host"
        "<th>waited for a copy<th>waited for the queue</tr>";
    const auto whole = static_cast<double>(analysis.end_ns - analysis.begin_ns);
    for (const Lane& lane : analysis.lanes) {
        if (!lane.busy) continue;
        double busy = 0, waits[3] = {};
        uint64_t until = 0;
        for (const TraceSlice& slice : lane.slices) {
            const uint64_t from = std::max(slice.from_ns, until);
            if (slice.to_ns > from) busy += static_cast<double>(slice.to_ns - from);
            until = std::max(until, slice.to_ns);
        }
        for (const LaneGap& gap : lane.gaps)
            waits[static_cast<int>(gap.reason)] += static_cast<double>(gap.to_ns - gap.from_ns);
        out += format("<tr><td>%s<td>%zu<td>%s<td>%s<td>%s<td>%s<td>%s</tr>",
                      escaped(lane.name).c_str(), lane.slices.size(), time_text(busy).c_str(),
                      percent(busy, whole).c_str(), time_text(waits[0]).c_str(),
                      time_text(waits[1]).c_str(), time_text(waits[2]).c_str());
    }
    return out + "</table>";
}

std::string row_table(const char* id, const char* what, const std::vector<KernelRow>& rows) {
    double all = 0;
    for (const KernelRow& row : rows) all += static_cast<double>(row.total_ns);
    std::string out = format(
        "<table id=\"%s\"><tr><th>%s<th>count<th>time<th>share<th>mean<th>shortest<th>longest</tr>",
        id, what);
    for (const KernelRow& row : rows) {
        const auto total = static_cast<double>(row.total_ns);
        out += format("<tr><td>%s<td>%llu<td>%s<td>%s<td>%s<td>%s<td>%s</tr>",
                      escaped(row.name).c_str(), (unsigned long long)row.count,
                      time_text(total).c_str(), percent(total, all).c_str(),
                      time_text(total / static_cast<double>(row.count)).c_str(),
                      time_text(static_cast<double>(row.shortest_ns)).c_str(),
                      time_text(static_cast<double>(row.longest_ns)).c_str());
    }
    return out + "</table>";
}

constexpr const char* kStyle =
    "body{font:14px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left;border-top:1px "
    "solid #ccc}canvas{width:100%}i{display:inline-block;width:1em;height:1em;margin-left:1em}"
    "#tip{height:1.3em;white-space:pre}";

constexpr const char* kLegend =
    "<p><i style=\"background:#2a8a66\"></i> work <i style=\"background:#cc2222\"></i> failed job "
    "<i style=\"background:#d8d8d8\"></i> waits for the host <i style=\"background:#f2c94c\"></i> "
    "waits for a copy <i style=\"background:#f2994a\"></i> waits for the queue <i "
    "style=\"background:#5588cc\"></i> call <i style=\"background:#aa33aa\"></i> event. Wheel: "
    "zoom; drag: move; double click: all.</p>";

}  // namespace

std::string timeline_page(const std::string& title, const Analysis& analysis) {
    std::string out = "<!doctype html><meta charset=\"utf-8\"><title>" + escaped(title) +
                      "</title><style>" + kStyle + "</style><h1>" + escaped(title) + "</h1><p>" +
                      time_text(static_cast<double>(analysis.end_ns - analysis.begin_ns)) +
                      format(", %zu lanes, %llu unfinished spans left out</p>",
                             analysis.lanes.size(), (unsigned long long)analysis.unfinished) +
                      kLegend +
                      "<canvas id=\"timeline\"></canvas><div id=\"tip\"></div><h2>Engines and "
                      "streams</h2>" +
                      lane_table(analysis) + "<h2>Kernels and jobs</h2>" +
                      row_table("kernels", "kernel", analysis.kernels) +
                      "<h2>Memory and counters over time</h2>";
    for (size_t i = 0; i < analysis.series.size(); ++i)
        out += format("<canvas id=\"series%zu\"></canvas>", i);
    return out + "<h2>Calls</h2>" + row_table("calls", "call", analysis.calls) +
           "<script id=\"data\" type=\"application/json\">" +
           in_script(
               data_json(analysis).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) +
           "</script><script>" + kPageScript + "</script>\n";
}

}  // namespace enpu::tools
