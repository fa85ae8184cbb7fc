"use strict";
(() => {
  const data = JSON.parse(document.getElementById("facts").textContent);
  const $ = (id) => document.getElementById(id);
  const { shown, policy, colours, experts, order, reach, fps, video, columns, perSheet } = data;
  const { memberships, leader, strongest, actions, distance } = shown;
  const { action_names: names, action_low: low, action_high: high } = policy;
  const last = memberships.length - 1;
  const percent = (x) => (100 * x).toFixed(1) + "%";
  let step = 0, timer = null, clock = 0, said = "";

  const bars = (box, count) => {
    const rows = [];
    for (let i = 0; i < count; i++) {
      const row = document.createElement("div");
      row.className = "row";
      row.innerHTML = '<span></span><div class="track"><i></i></div><span></span>';
      box.append(row);
      const [name, track, value] = row.children;
      rows.push({ name, fill: track.firstChild, value, row });
    }
    return rows;
  };
  const members = bars($("now-members"), Math.min(6, order.length) + 1);
  const moves = bars($("now-action"), names.length);

  const picture = () => {
    if (!video) return;
    const frame = Math.floor(step / video.every);
    const sheet = document.querySelectorAll(".sheet")[Math.floor(frame / perSheet)];
    const i = frame % perSheet, w = video.width, h = video.height;
    const draw = () => $("screen").getContext("2d").drawImage(
      sheet, (i % columns) * w + 1, Math.floor(i / columns) * h + 1, w - 2, h - 2, 0, 0, w, h);
    if (sheet.complete) draw(); else sheet.addEventListener("load", draw, { once: true });
  };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const band = () => {
    const canvas = $("band"), wide = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    const high = Math.round(90 * devicePixelRatio);
    canvas.width = wide; canvas.height = high;
    const pen = canvas.getContext("2d");
    pen.fillStyle = style("--default");
    pen.fillRect(0, 0, wide, high);
    for (let x = 0; x < wide; x++) {
      const row = memberships[Math.min(last, Math.floor(x * (last + 1) / wide))];
      let y = high;
      for (const k of order) {
        const tall = row[k] * high;
        pen.fillStyle = colours[k];
        pen.fillRect(x, y - tall, 1, tall);
        y -= tall;
      }
    }
    const at = (step + 0.5) / (last + 1) * wide;
    pen.fillStyle = style("--bg");
    pen.fillRect(at - 2.5 * devicePixelRatio, 0, 5 * devicePixelRatio, high);
    pen.fillStyle = style("--ink");
    pen.fillRect(at - devicePixelRatio, 0, 2 * devicePixelRatio, high);
  };

  const panel = () => {
    const now = memberships[step];
    const sorted = order.slice().sort((a, b) => now[b] - now[a] || a - b);
    const rest = 1 - now.reduce((sum, x) => sum + x, 0);
    members.forEach((row, i) => {
      const isDefault = i === members.length - 1;
      const k = sorted[i], value = isDefault ? rest : now[k];
      row.name.textContent = isDefault ? "default" : experts[k];
      row.fill.style.cssText = `left:0;width:${100 * Math.max(0, value)}%;background:${isDefault ? "var(--soft)" : colours[k]}`;
      row.value.textContent = percent(Math.max(0, value));
    });
    moves.forEach((row, i) => {
      const span = high[i] - low[i] || 1;
      const zero = Math.min(1, Math.max(0, -low[i] / span));
      const at = Math.min(1, Math.max(0, (actions[step][i] - low[i]) / span));
      row.name.textContent = names[i];
      row.fill.style.cssText = `left:${100 * Math.min(zero, at)}%;width:${100 * Math.abs(at - zero)}%;background:var(--soft)`;
      row.value.textContent = actions[step][i].toFixed(2);
    });
    const k = strongest[step];
    said = leader[step] === k ? `${experts[k]} leads` : `default leads, then ${experts[k]}`;
    $("now-step").textContent = step;
    $("now-leader").textContent = said;
    $("now-swatch").style.background = colours[k];
    $("now-leader").dataset.expert = k;
    $("now-away").textContent = `${experts[k]}: ${distance[step].toFixed(2)}${reach[k] === null ? "" : ` of ${reach[k].toFixed(2)}`} radii away`;
  };

  const show = (to) => {
    step = Math.min(last, Math.max(0, Math.round(to)));
    $("scrubber").value = step;
    picture(); band(); panel();
    $("scrubber").setAttribute("aria-valuetext", `step ${step}, ${said}`);
  };
  const pause = () => { cancelAnimationFrame(timer); timer = null; label(); };
  const label = () => { $("play").textContent = timer === null ? "Play" : "Pause"; $("said").setAttribute("aria-live", timer === null ? "polite" : "off"); };
  const run = (time) => {
    const pace = fps * Number($("speed").value) / 1000, moved = Math.floor((time - clock) * pace);
    if (moved >= 1) { clock += moved / pace; show(step + moved); }
    if (step >= last) return pause();
    timer = requestAnimationFrame(run);
  };
  const play = () => {
    if (timer !== null) return pause();
    if (step >= last) show(0);
    clock = performance.now();
    timer = requestAnimationFrame(run);
    label();
  };

  $("play").addEventListener("click", play);
  $("back").addEventListener("click", () => { pause(); show(step - 1); });
  $("on").addEventListener("click", () => { pause(); show(step + 1); });
  $("scrubber").addEventListener("input", (event) => { pause(); show(Number(event.target.value)); });
  const seek = (event) => {
    const box = $("band").getBoundingClientRect();
    pause();
    show((event.clientX - box.left) / box.width * (last + 1) - 0.5);
  };
  $("band").addEventListener("pointerdown", seek);
  $("band").addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
  $("player").addEventListener("keydown", (event) => {
    if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
    const jump = { ArrowLeft: -1, ArrowRight: 1, PageUp: 25, PageDown: -25, Home: -Infinity, End: Infinity }[event.key];
    if (jump !== undefined) { event.preventDefault(); pause(); show(jump === -Infinity ? 0 : jump === Infinity ? last : step + jump); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") { event.preventDefault(); play(); }
  });
  for (const button of document.querySelectorAll(".act")) {
    button.addEventListener("click", () => {
      const on = button.previousElementSibling.classList.toggle("playing");
      button.textContent = on ? "Stop" : "Play its action";
    });
  }
  addEventListener("resize", band);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", band);
  show(0);
})();
