// Keeps the page up to date: the server renders it, this puts what has changed into
// place and draws the charts. Without it the page shows the same, once.
(() => {
  "use strict";
  const every = 2000; // ms
  const kept = 900; // samples, as on the server
  const pause = document.getElementById("pause");
  const silence = document.getElementById("silence");
  const bright = matchMedia("(prefers-color-scheme: light)");

  // follow makes an element what the new one is. Nodes stay where they can, so that
  // focus, selection, an open <details> and a screen reader's place are kept.
  function follow(old, now) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    // With scripts on, the text of a <noscript> is not parsed: the two would differ.
    if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName === "NOSCRIPT" || "keep" in old.dataset) return;
    for (const name of ["class", "datetime", "href", "aria-labelledby"]) {
      const value = now.getAttribute(name);
      if (old.getAttribute(name) === value) continue;
      if (value === null) old.removeAttribute(name); else old.setAttribute(name, value);
    }
    const a = [...old.childNodes], b = [...now.childNodes];
    if (a.length === b.length && a.every((node, i) => node.nodeName === b[i].nodeName)) {
      a.forEach((node, i) => follow(node, b[i]));
    } else if (old.querySelector("[data-keep]") === null) {
      old.replaceChildren(...b);
    }
  }

  const columns = {
    throughput: ["applied", "duplicate", "ignored", "dead_lettered"].map((name) => ({ name, column: name + "_per_second" })),
    lag_records: [{ name: "applied", column: "lag_records" }],
    lag_seconds: [{ name: "applied", column: "lag_seconds" }],
  };
  const dashes = { duplicate: [8, 4], ignored: [2, 4] };
  const history = { at: [] };
  for (const series of Object.values(columns).flat()) history[series.column] = [];
  const charts = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
  // span is a duration on an axis, in its largest unit.
  const span = (s) => (s >= 3600 ? short.format(s / 3600) + " h" : s >= 60 ? short.format(s / 60) + " min" : short.format(s) + " s");

  function chart(box, name) {
    const timed = name === "lag_seconds";
    const said = (n) => (n === null || n === undefined ? "–" : whole.format(n) + (timed ? " s" : ""));
    const series = columns[name];
    const axis = { stroke: () => colour("dim"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const readout = document.createElement("div");
    readout.className = "readout";
    readout.setAttribute("aria-hidden", "true");
    const size = () => ({ width: box.clientWidth, height: box.clientHeight });
    const plot = new uPlot({
      ...size(), ms: 1, legend: { show: false }, padding: [8, 20, 0, 0],
      tzDate: (ms) => uPlot.tzDate(new Date(ms), "Etc/UTC"),
      cursor: { y: false, sync: { key: "time" }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { range: (_, first, last) => [Math.min(first, last - 120000), last] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, size: 28, space: 70, values: (_, ticks) => ticks.map((t) => new Date(t).toISOString().slice(11, 16)), incrs: [1, 2, 5, 15].map((m) => m * 60000) },
        {
          ...axis, size: 56, space: 36, values: (_, ticks) => ticks.map(timed ? span : short.format),
          incrs: timed ? [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 18000, 36000, 86400, 432000, 8640000] : undefined,
        },
      ],
      series: [{}, ...series.map((s) => ({
        stroke: () => colour(s.name), width: 1.5, dash: dashes[s.name], points: { show: false },
        fill: series.length === 1 ? () => colour(s.name) + "1f" : undefined,
      }))],
      hooks: {
        setCursor: [(u) => {
          const i = u.cursor.idx;
          readout.hidden = i === null || i === undefined;
          if (readout.hidden) return;
          readout.textContent = new Date(u.data[0][i]).toISOString().slice(11, 19) + "  " +
            series.map((s, n) => (series.length > 1 ? s.name.replace("_", "-") + " " : "") + said(u.data[n + 1][i])).join("  ");
        }],
      },
    }, data(series), box);
    plot.over.append(readout);
    readout.hidden = true;
    new ResizeObserver(() => plot.setSize(size())).observe(box);
    charts.push({ plot, series });
  }

  const data = (series) => [history.at, ...series.map((s) => history[s.column])];

  function draw() {
    for (const { plot, series } of charts) plot.setData(data(series));
  }

  // append puts new samples behind those there are. A silence is a gap in the lines. Older samples
  // come only when the clock of the instance was set back: they replace what there is.
  function append(news) {
    if (news.at[0] <= history.at.at(-1)) for (const column of Object.values(history)) column.length = 0;
    const last = history.at.at(-1);
    if (news.at.length > 0 && last !== undefined && news.at[0] - last > 5000) {
      for (const [name, column] of Object.entries(history)) column.push(name === "at" ? last + 1 : null);
    }
    for (const [name, column] of Object.entries(history)) {
      column.push(...news[name]);
      column.splice(0, column.length - kept);
    }
  }

  async function get(path) {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(path + " answers " + answer.status);
    return answer;
  }

  async function renew() {
    try {
      const [page, news] = await Promise.all([
        get("./").then((answer) => answer.text()),
        get("history.json?after=" + (history.at.at(-1) ?? 0)).then((answer) => answer.json()),
      ]);
      const now = new DOMParser().parseFromString(page, "text/html");
      document.title = now.title;
      follow(document.body, now.body);
      append(news);
      draw();
      silence.hidden = true;
    } catch {
      if (silence.hidden) {
        silence.textContent = "No answer from this instance since " + new Date().toISOString().slice(11, 19) + ". What stands below is as it was then.";
        silence.hidden = false;
      }
    }
  }

  const wanted = () => document.visibilityState === "visible" && pause.getAttribute("aria-pressed") === "false";

  async function run() {
    for (;;) {
      if (wanted()) await renew();
      await new Promise((wake) => setTimeout(wake, every));
    }
  }

  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") === "false"));
  });
  bright.addEventListener("change", () => charts.forEach(({ plot }) => plot.redraw()));
  pause.hidden = false;
  document.documentElement.classList.add("live");
  for (const figure of document.querySelectorAll("figure")) chart(figure.querySelector(".plot"), figure.dataset.chart);
  run();
})();
