// The zoomable Gantt chart: no library, no network. Each figure.gantt holds its jobs as JSON columns.
(function () {
  "use strict";
  const root = document.documentElement;
  window.addEventListener("error", (event) => { root.dataset.error = String(event.message); });
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const MARGIN = { left: 54, right: 8, top: 6, bottom: 36 };

  function span(seconds) {
    const s = Math.round(seconds);
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + two(s % 60) + " s";
    if (s < 172800) return Math.floor(s / 3600) + " h " + two(Math.floor(s % 3600 / 60)) + " min";
    return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
  }

  function roundStep(raw, steps) {
    for (const step of steps) if (step >= raw) return step;
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  }

  function chart(figure) {
    const data = JSON.parse(figure.querySelector("script.jobs").textContent);
    const canvas = figure.querySelector("canvas");
    const stage = figure.querySelector(".stage");
    const tip = figure.querySelector(".tip");
    const tools = figure.querySelector(".tools");
    const still = figure.querySelector(".still");
    const omitted = figure.dataset.omitted === "yes";
    const context = canvas.getContext("2d");
    const whole = { t0: 0, t1: Math.max(data.span, 1), r0: 0, r1: data.rows };
    let view = { ...whole };
    let colourBy = "wait";
    let marked = -1;
    let box = null;
    let pending = false;
    const wait = data.wait.map((w) => palette.bounds.filter((bound) => w >= bound).length);
    const picture = new Image();
    picture.onload = () => redraw();
    picture.src = still.querySelector("image").getAttribute("href");

    function area() {
      return {
        x: MARGIN.left, y: MARGIN.top,
        w: Math.max(canvas.clientWidth - MARGIN.left - MARGIN.right, 10),
        h: Math.max(canvas.clientHeight - MARGIN.top - MARGIN.bottom, 10),
      };
    }

    // A bundle's members have times of their own.
    const startOf = (i) => data.from ? data.from[i] : data.start[data.job[i]];
    const lengthOf = (i) => data.for ? data.for[i] : data.length[data.job[i]];

    function colour(job) {
      if (colourBy === "wait") return palette.wait[wait[job]];
      if (colourBy === "bundle") {
        return data.bundles[job] ? palette.user[job % palette.user.length] : palette.other;
      }
      return data.hue[job] < 0 ? palette.other : palette.user[data.hue[job]];
    }

    function redraw() {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; draw(); });
    }

    function draw() {
      const scale = window.devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
      if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
      const style = getComputedStyle(root);
      const ink = style.getPropertyValue("--ink-2"), line = style.getPropertyValue("--line");
      const { x, y, w, h } = area();
      const perSecond = w / (view.t1 - view.t0), perRow = h / (view.r1 - view.r0);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      context.fillStyle = style.getPropertyValue("--ground");
      context.fillRect(x, y, w, h);
      context.save();
      context.beginPath();
      context.rect(x, y, w, h);
      context.clip();
      if (omitted && picture.complete && picture.naturalWidth) {
        context.globalAlpha = 0.4;
        context.drawImage(picture,
          x - view.t0 * perSecond, y + h - (whole.r1 - view.r0) * perRow,
          whole.t1 * perSecond, whole.r1 * perRow);
        context.globalAlpha = 1;
      }
      const outlined = [];
      for (let i = 0; i < data.job.length; i++) {
        const job = data.job[i];
        const start = startOf(i), end = start + lengthOf(i);
        const low = data.row[i], high = low + data.height[i];
        if (end < view.t0 || start > view.t1 || high < view.r0 || low > view.r1) continue;
        const left = x + (start - view.t0) * perSecond, top = y + h - (high - view.r0) * perRow;
        let wide = lengthOf(i) * perSecond, tall = data.height[i] * perRow;
        if (wide > 4) wide -= 0.7;
        if (tall > 4) tall -= 0.7;
        context.fillStyle = colour(job);
        context.fillRect(left, top, Math.max(wide, 0.3), Math.max(tall, 0.3));
        if (job === marked) outlined.push([left, top, wide, tall]);
      }
      context.strokeStyle = style.getPropertyValue("--ink");
      context.lineWidth = 1.5;
      for (const [left, top, wide, tall] of outlined) context.strokeRect(left, top, wide, tall);
      if (box) {
        context.fillStyle = "rgba(128, 140, 160, .25)";
        context.fillRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
        context.strokeRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
      }
      context.restore();

      context.font = "12px system-ui, sans-serif";
      context.fillStyle = ink;
      context.strokeStyle = line;
      context.lineWidth = 1;
      context.textAlign = "right";
      context.textBaseline = "middle";
      const rowStep = Math.max(1, roundStep((view.r1 - view.r0) / 6, []));
      for (let row = Math.ceil(view.r0 / rowStep) * rowStep; row <= view.r1 + 1e-9; row += rowStep) {
        context.fillText(String(Math.round(row)), x - 6, Math.max(y + h - (row - view.r0) * perRow, 7));
      }
      for (const [row] of data.pools.slice(1)) {
        if (row < view.r0 || row > view.r1) continue;
        const at = y + h - (row - view.r0) * perRow;
        context.beginPath();
        context.moveTo(x, at);
        context.lineTo(x + w, at);
        context.stroke();
      }
      context.textAlign = "center";
      context.textBaseline = "top";
      const length = view.t1 - view.t0;
      const [unit, name] = length > 4 * 86400 ? [86400, "days"] : length > 4 * 3600 ? [3600, "hours"]
        : length > 240 ? [60, "minutes"] : [1, "seconds"];
      const step = roundStep(length / unit / Math.max(2, Math.min(10, w / 70)), [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500]);
      for (let n = Math.ceil(view.t0 / unit / step); n * step * unit <= view.t1 + 1e-9; n++) {
        const at = x + (n * step * unit - view.t0) * perSecond;
        context.beginPath();
        context.moveTo(at, y + h);
        context.lineTo(at, y + h + 4);
        context.stroke();
        if (at < x + w - 10) context.fillText(String(Number((n * step).toFixed(2))), at, y + h + 6);
      }
      context.fillText(name + " since the beginning", x + w / 2, y + h + 21);
    }

    function show(next) {
      const t = Math.min(Math.max(next.t1 - next.t0, Math.min(10, whole.t1)), whole.t1);
      const r = Math.min(Math.max(next.r1 - next.r0, Math.min(2, whole.r1)), whole.r1);
      const t0 = Math.min(Math.max(next.t0, 0), whole.t1 - t), r0 = Math.min(Math.max(next.r0, 0), whole.r1 - r);
      view = { t0, t1: t0 + t, r0, r1: r0 + r };
      redraw();
    }

    function zoom(factor, at) {
      const middle = at === undefined ? (view.t0 + view.t1) / 2 : at;
      show({ ...view, t0: middle - (middle - view.t0) * factor, t1: middle + (view.t1 - middle) * factor });
    }

    function move(dt, dr) {
      const t = (view.t1 - view.t0) * dt, r = (view.r1 - view.r0) * dr;
      show({ t0: view.t0 + t, t1: view.t1 + t, r0: view.r0 + r, r1: view.r1 + r });
    }

    const actions = {
      in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25, 0), right: () => move(0.25, 0),
      up: () => move(0, 0.25), down: () => move(0, -0.25), all: () => show(whole),
      next: () => step(1), previous: () => step(-1),
    };

    function point(event) {
      const bounds = canvas.getBoundingClientRect();
      const { x, y, w, h } = area();
      const px = event.clientX - bounds.left, py = event.clientY - bounds.top;
      return {
        px, py,
        t: view.t0 + (px - x) / w * (view.t1 - view.t0),
        r: view.r0 + (y + h - py) / h * (view.r1 - view.r0),
      };
    }

    function jobAt({ t, r }) {
      const slack = (view.t1 - view.t0) / area().w;
      let found = -1;
      for (let i = 0; i < data.job.length; i++) {
        if (r < data.row[i] || r >= data.row[i] + data.height[i]) continue;
        const job = data.job[i], start = startOf(i);
        if (t >= start && t < start + lengthOf(i)) return job;
        if (Math.abs(t - start) < slack) found = job;
      }
      return found;
    }

    function describe(job) {
      const estimate = data.estimate[job], subjobs = data.bundles ? data.bundles[job] : 0;
      return "job " + data.id[job]
        + (data.users[data.user[job]] ? "\nuser " + data.users[data.user[job]] : "")
        + "\n" + data.size[job] + (subjobs ? " processes in " + subjobs + " subjobs for " : " processors for ")
        + span(data.length[job])
        + (estimate > 0 ? " (estimate " + span(estimate) + ")" : "")
        + "\nwaited " + span(data.wait[job]) + ", " + data.states[data.state[job]]
        + "\nstarted " + span(data.start[job]) + " after the beginning";
    }

    function hover(event) {
      const where = point(event);
      tell(jobAt(where), where.px, where.py);
    }

    function tell(job, px, py) {
      if (job !== marked) { marked = job; redraw(); }
      tip.hidden = job < 0;
      if (job < 0) return;
      tip.textContent = describe(job);
      const right = px > stage.clientWidth / 2;
      tip.style.left = right ? "" : px + 14 + "px";
      tip.style.right = right ? stage.clientWidth - px + 14 + "px" : "";
      tip.style.top = Math.min(py + 10, canvas.clientHeight - 110) + "px";
    }

    // By the keyboard: the next or previous of the jobs in view, by their starts.
    const order = data.job.map((_, i) => i).sort((a, b) => startOf(a) - startOf(b) || data.row[a] - data.row[b]);
    let place = -1;

    function step(by) {
      for (let tries = 0; tries < order.length; tries++) {
        place = (place + by + order.length) % order.length;
        const i = order[place], start = startOf(i);
        if (start > view.t1 || start + lengthOf(i) < view.t0) continue;
        if (data.row[i] > view.r1 || data.row[i] + data.height[i] < view.r0) continue;
        const { x, y, w, h } = area();
        const px = x + (Math.max(start, view.t0) - view.t0) / (view.t1 - view.t0) * w;
        const py = y + h - (Math.min(data.row[i] + data.height[i], view.r1) - view.r0) / (view.r1 - view.r0) * h;
        tell(data.job[i], px, py);
        return;
      }
    }

    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return hover(event);
      if (event.button !== 0) return;
      const { px, py } = point(event);
      box = { x0: px, y0: py, x1: px, y1: py, from: point(event) };
      tip.hidden = true;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!box) return hover(event);
      const { px, py } = point(event);
      box.x1 = px;
      box.y1 = py;
      redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!box) return;
      const from = box.from, to = point(event);
      box = null;
      if (Math.abs(to.px - from.px) > 6 && Math.abs(to.py - from.py) > 6) {
        show({ t0: Math.min(from.t, to.t), t1: Math.max(from.t, to.t),
               r0: Math.min(from.r, to.r), r1: Math.max(from.r, to.r) });
      } else redraw();
    });
    canvas.addEventListener("pointercancel", () => { box = null; redraw(); });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; marked = -1; redraw(); });
    canvas.addEventListener("dblclick", (event) => zoom(0.4, point(event).t));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // an ordinary wheel scrolls the page
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, point(event).t);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const action = { "+": "in", "=": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right",
                       ArrowUp: "up", ArrowDown: "down", n: "next", p: "previous" }[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[action]();
    });
    for (const button of tools.querySelectorAll("button")) {
      button.addEventListener("click", actions[button.dataset.do]);
    }
    if (data.bundles) tools.querySelector("select").add(new Option("bundle", "bundle"));
    tools.querySelector("select").addEventListener("change", (event) => {
      colourBy = event.target.value;
      figure.querySelector(".by-wait").hidden = colourBy !== "wait";
      figure.querySelector(".by-user").hidden = colourBy !== "user";
      figure.querySelector(".by-bundle").hidden = colourBy !== "bundle";
      redraw();
    });

    tools.hidden = false;
    canvas.hidden = false;
    figure.classList.add("live");
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
    return data.job.length;
  }

  let drawn = 0;
  for (const figure of document.querySelectorAll("figure.gantt")) drawn += chart(figure);
  root.dataset.rectangles = String(drawn);
  root.dataset.report = "ready";
})();
