// SPDX-License-Identifier: MIT
// Draws the timeline and the counters of the page from the data in it. Wheel: zoom; drag: move; double click: all.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const colours = {job: "#2a8a66", call: "#5588cc", bad: "#cc2222", instant: "#aa33aa", host: "#d8d8d8", copy: "#f2c94c", queue: "#f2994a"};
const left = 190, row = 16, gap = 6;
const view = {from: 0, to: data.end_ns - data.begin_ns || 1};
const canvas = document.getElementById("timeline"), tip = document.getElementById("tip");
const height = lane => Math.max(1, lane.depth) * row + gap;
const text = ns => ns >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(2) + " ms" : ns >= 1e3 ? (ns / 1e3).toFixed(1) + " us" : ns.toFixed(0) + " ns";
let boxes = [], drawn = 0;

function draw() {
    const width = canvas.clientWidth || 1200, scale = (width - left) / (view.to - view.from);
    canvas.width = width;
    canvas.height = data.lanes.reduce((sum, lane) => sum + height(lane), 24);
    const to = canvas.getContext("2d");
    to.font = "12px sans-serif";
    boxes = [];
    drawn = 0;
    let y = 20;
    for (const lane of data.lanes) {
        to.fillStyle = "#222";
        to.fillText(lane.name.length > 30 ? "…" + lane.name.slice(-29) : lane.name, 0, y + 12);
        for (const [from, end, depth, kind, name, note] of lane.boxes) {
            if (end < view.from || from > view.to) continue;
            const x = left + Math.max(0, from - view.from) * scale;
            const wide = Math.max(0.7, left + Math.min(view.to, end) * scale - view.from * scale - x);
            to.fillStyle = colours[data.kinds[kind]];
            to.fillRect(x, y + depth * row, wide, row - 2);
            boxes.push([x, y + depth * row, wide, data.strings[name], data.strings[note], end - from]);
            ++drawn;
            if (wide > 60 && kind < 2) {
                to.fillStyle = "#fff";
                to.fillText(data.strings[name].slice(0, wide / 7), x + 3, y + depth * row + 11);
            }
        }
        y += height(lane);
    }
    to.fillStyle = "#222";
    to.fillText(text(view.from), left, 12);
    to.fillText(text(view.to), width - 70, 12);
    document.body.dataset.drawn = drawn;
}

function plot(chart, series) {
    const width = chart.clientWidth || 1200, to = chart.getContext("2d"), tall = 90;
    chart.width = width;
    chart.height = tall + 16;
    const top = Math.max(1, ...series.values.map(v => v[1])), scale = (width - left) / (data.end_ns - data.begin_ns || 1);
    to.font = "12px sans-serif";
    to.fillStyle = "#222";
    to.fillText(series.name, 0, 20);
    to.fillText("max " + top.toLocaleString() + " " + series.unit, 0, 36);
    to.fillStyle = "#9cc4b4";
    series.values.forEach(([ns, value], i) => {
        const next = i + 1 < series.values.length ? series.values[i + 1][0] : data.end_ns - data.begin_ns;
        to.fillRect(left + ns * scale, tall * (1 - value / top) + 8, Math.max(0.7, (next - ns) * scale), tall * value / top);
    });
}

canvas.onwheel = event => {
    event.preventDefault();
    const at = view.from + (event.offsetX - left) / (canvas.width - left) * (view.to - view.from);
    const by = event.deltaY > 0 ? 1.25 : 0.8;
    view.from = at - (at - view.from) * by;
    view.to = at + (view.to - at) * by;
    draw();
};
canvas.onmousemove = event => {
    if (event.buttons & 1) {
        const by = event.movementX / (canvas.width - left) * (view.to - view.from);
        view.from -= by;
        view.to -= by;
        draw();
    }
    const hit = boxes.findLast(([x, y, w]) => event.offsetX >= x && event.offsetX <= x + w && event.offsetY >= y && event.offsetY < y + row);
    tip.textContent = hit ? `${hit[3]}  ${text(hit[5])}  ${hit[4]}` : "";
};
canvas.ondblclick = () => { view.from = 0; view.to = data.end_ns - data.begin_ns || 1; draw(); };
onresize = draw;
draw();
data.series.forEach((series, i) => plot(document.getElementById("series" + i), series));
