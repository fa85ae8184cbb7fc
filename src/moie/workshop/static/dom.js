/* Small helpers: finding and making elements, and numbers as people read them. */

export const $ = (id) => document.getElementById(id);

/** An element. Properties with a dash in their name become attributes; classes and text are plain properties. */
export const make = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
};

/** Writes only what is new: a page that shows sixty steps a second must not touch what stays as it is. */
export const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
export const mark = (node, name, value) => {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
};
export const paint = (node, name, value) => {
  if (node.style.getPropertyValue(name) !== value) node.style.setProperty(name, value);
};

/** A button that cannot be used now, but keeps the focus of the keyboard. */
export const allow = (button, allowed) => mark(button, "aria-disabled", String(!allowed));
export const onPress = (button, act) =>
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") act();
  });

export const percent = (share) => (100 * share).toFixed(1) + "%";

/** A number for a field that can be edited: four digits after the point, or three that count where it is tiny. */
export const exact = (value) => {
  if (!Number.isFinite(value)) return "";
  const tiny = Math.abs(value) < 1e-3;
  return String(Number(tiny ? value.toPrecision(3) : Number(value.toPrecision(6)).toFixed(4)));
};

/** A number to read: three digits that count. */
export const brief = (value) => {
  if (!Number.isFinite(value)) return "-";
  if (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3)) return value.toExponential(1);
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 || value === 0 ? 2 : 3;
  return value.toFixed(digits);
};
export const signed = (value, digits = 2) => {
  const size = Math.abs(value).toFixed(digits);
  return Number(size) === 0 ? size : (value > 0 ? "+" : "−") + size;
};
export const plural = (count, one, many = one + "s") => `${count} ${count === 1 ? one : many}`;

/** The value of one of the page's colours, for drawing. */
export const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const whenThemeChanges = (act) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act);

/** Makes a canvas as sharp as the screen; returns its pen, scaled so that lengths are those of the page. */
export const sharpen = (canvas) => {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
  const wide = Math.round(width * ratio), tall = Math.round(height * ratio);
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== tall) canvas.height = tall;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height };
};

/** Calls act at most once per drawn frame; also where nothing is drawn because the page is hidden. */
export const oncePerFrame = (act) => {
  let due = false;
  const run = () => {
    if (!due) return;
    due = false;
    act();
  };
  document.addEventListener("visibilitychange", () => document.hidden && run());
  return () => {
    if (due) return;
    due = true;
    if (document.hidden) setTimeout(run, 0);
    else requestAnimationFrame(run);
  };
};
