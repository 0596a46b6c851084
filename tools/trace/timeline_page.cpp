// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "lib/output.h"
#include "timeline.h"

namespace enpu::tools {
namespace {

constexpr double kWidth = 1200, kLane = 26, kLeft = 150;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '&')
            out += "&amp;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

struct Box {
    uint64_t from_ns, to_ns;
    const char* kind;
    std::string title;
};
struct Lane {
    std::string name;
    std::vector<Box> boxes;
};

std::string svg_of(const std::vector<Lane>& lanes, uint64_t begin_ns, uint64_t end_ns) {
    const double scale = kWidth / std::max(1.0, static_cast<double>(end_ns - begin_ns));
    std::string out = format("<svg id=\"t\" width=\"%.0f\" height=\"%.0f\">", kLeft + kWidth,
                             kLane * static_cast<double>(lanes.size()) + 24);
    for (size_t i = 0; i < lanes.size(); ++i) {
        const double y = kLane * static_cast<double>(i) + 20;
        out += format("<text x=\"0\" y=\"%.0f\">%s</text>", y + 14, escaped(lanes[i].name).c_str());
        for (const Box& box : lanes[i].boxes)
            out += format(
                "<rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"18\"><title>%s, "
                "%s"
                "</title></rect>",
                box.kind, kLeft + static_cast<double>(box.from_ns - begin_ns) * scale, y,
                std::max(0.4, static_cast<double>(box.to_ns - box.from_ns) * scale),
                escaped(box.title).c_str(),
                time_text(static_cast<double>(box.to_ns - box.from_ns)).c_str());
    }
    out += format(
        "<text x=\"%.0f\" y=\"12\">0</text><text x=\"%.0f\" y=\"12\" text-anchor=\"end\">%s"
        "</text></svg>",
        kLeft, kLeft + kWidth, time_text(static_cast<double>(end_ns - begin_ns)).c_str());
    return out;
}

const char* reason_text(Gap reason) {
    return reason == Gap::kHost ? "wait for the host: nothing was submitted"
                                : "wait for the queue: a dependency or the scheduler";
}

std::vector<Lane> lanes_of(const std::vector<KernelEvent>& events) {
    std::vector<Lane> lanes;
    for (const auto& [engine, jobs] : job_spans(events)) {
        Lane lane{format("engine %u", engine), {}};
        for (const JobSpan& job : jobs)
            lane.boxes.push_back(
                {job.begin_ns, job.done_ns, job.error ? "bad" : "job",
                 format("job %llu of %s", (unsigned long long)job.seqno, job.task.c_str())});
        for (const EngineGap& gap : gaps_of(jobs))
            lane.boxes.push_back({gap.from_ns, gap.to_ns,
                                  gap.reason == Gap::kHost ? "host" : "queue",
                                  reason_text(gap.reason)});
        lanes.push_back(std::move(lane));
    }
    std::map<int, Lane> threads;
    for (const IoctlSpan& span : ioctl_spans(events)) {
        threads[span.tid].name = span.task;
        threads[span.tid].boxes.push_back({span.from_ns, span.to_ns, "ioctl", span.name});
    }
    for (auto& [tid, lane] : threads) lanes.push_back(std::move(lane));
    Lane interrupts{"interrupts", {}};
    for (const KernelEvent& event : events)
        if (event.name == "enpu_irq")
            interrupts.boxes.push_back({event.ns, event.ns, "irq", event.text});
    lanes.push_back(std::move(interrupts));
    return lanes;
}

std::string percent(double part, double whole) {
    return format("%.1f %%", whole > 0 ? 100 * part / whole : 0);
}

std::string engine_table(const std::vector<KernelEvent>& events, double whole) {
    std::string out =
        "<table><tr><th>engine<th>jobs<th>failed<th>busy<th>of the time<th>mean<th>longest"
        "<th>waited for the host<th>waited for the queue</tr>";
    for (const auto& [engine, jobs] : job_spans(events)) {
        double busy = 0, longest = 0, host = 0, queue = 0;
        unsigned bad = 0;
        for (const JobSpan& job : jobs) {
            const double ns = static_cast<double>(job.done_ns - job.begin_ns);
            busy += ns;
            longest = std::max(longest, ns);
            bad += job.error != 0;
        }
        for (const EngineGap& gap : gaps_of(jobs))
            (gap.reason == Gap::kHost ? host : queue) +=
                static_cast<double>(gap.to_ns - gap.from_ns);
        out += format("<tr><td>%u<td>%zu<td>%u<td>%s<td>%s<td>%s<td>%s<td>%s<td>%s</tr>", engine,
                      jobs.size(), bad, time_text(busy).c_str(), percent(busy, whole).c_str(),
                      time_text(busy / double(jobs.size())).c_str(), time_text(longest).c_str(),
                      time_text(host).c_str(), time_text(queue).c_str());
    }
    return out + "</table>";
}

std::string ioctl_table(const std::vector<KernelEvent>& events) {
    struct Row {
        unsigned count = 0, failed = 0;
        double total = 0, longest = 0;
    };
    std::map<std::string, Row> rows;
    for (const IoctlSpan& span : ioctl_spans(events)) {
        Row& row = rows[span.name];
        const double ns = static_cast<double>(span.to_ns - span.from_ns);
        ++row.count;
        row.failed += span.result < 0;
        row.total += ns;
        row.longest = std::max(row.longest, ns);
    }
    std::string out = "<table><tr><th>ioctl<th>calls<th>failed<th>time<th>mean<th>longest</tr>";
    for (const auto& [name, row] : rows)
        out += format("<tr><td>%s<td>%u<td>%u<td>%s<td>%s<td>%s</tr>", name.c_str(), row.count,
                      row.failed, time_text(row.total).c_str(),
                      time_text(row.total / row.count).c_str(), time_text(row.longest).c_str());
    return out + "</table>";
}

constexpr const char* kStyle =
    "body{font:14px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left;border-top:1px "
    "solid #ccc}svg text{font:12px sans-serif}.job{fill:#2a7}.bad{fill:#c22}.host{fill:#ddd}.queue{"
    "fill:#fb6}.ioctl{fill:#58c}.irq{fill:#a3a}i{display:inline-block;width:1em;height:1em}";

}  // namespace

std::string timeline_page(const std::string& title, const std::vector<KernelEvent>& events) {
    const std::vector<Lane> lanes = lanes_of(events);
    uint64_t begin = UINT64_MAX, end = 0;
    for (const Lane& lane : lanes)
        for (const Box& box : lane.boxes) {
            begin = std::min(begin, box.from_ns);
            end = std::max(end, box.to_ns);
        }
    if (end == 0) begin = 0;
    return "<!doctype html><meta charset=\"utf-8\"><title>" + escaped(title) + "</title><style>" +
           kStyle + "</style><h1>" + escaped(title) +
           "</h1><p><i class=\"job\" style=\"background:#2a7\"></i> job <i "
           "style=\"background:#c22\"></i> failed job <i style=\"background:#ddd\"></i> waits for "
           "the "
           "host <i style=\"background:#fb6\"></i> waits for the queue <i "
           "style=\"background:#58c\"></i> ioctl <i style=\"background:#a3a\"></i> interrupt</p>" +
           svg_of(lanes, begin, end) + "<h2>Engines</h2>" +
           engine_table(events, static_cast<double>(end - begin)) + "<h2>Calls of the driver</h2>" +
           ioctl_table(events) + "\n";
}

}  // namespace enpu::tools
