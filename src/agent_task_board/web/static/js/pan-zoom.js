/** Pans and zooms one SVG group within its frame, by wheel, drag and pinch. */

const MIN_SCALE = 0.08;
const MAX_SCALE = 2;
const DRAG_DISTANCE = 4; // pixels of movement that turn a click into a drag

export class PanZoom {
  #frame;
  #group;
  #pointers = new Map();
  #moved = 0;
  #fitted = null;
  x = 0;
  y = 0;
  scale = 1;
  /** The size of the drawing, in its own units. */
  content = { width: 1, height: 1 };

  /** @param {SVGSVGElement} frame receives the pointer events; @param {SVGGElement} group is transformed. */
  constructor(frame, group) {
    this.#frame = frame;
    this.#group = group;
    frame.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.#down(event));
    frame.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, (event) => this.#up(event));
    frame.addEventListener("click", (event) => this.#click(event), { capture: true });
    frame.addEventListener("dragstart", (event) => event.preventDefault());
    new ResizeObserver(() => this.isFitted && this.fit(this.#fitted)).observe(frame);
  }

  /** Whether the view is still as `fit` set it. If so, it is fitted again when the frame changes size. */
  get isFitted() {
    return this.#fitted !== null;
  }

  /** Zooms around a point of the frame, by default its centre. */
  zoom(factor, at = this.#middle()) {
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, this.scale * factor));
    const ratio = scale / this.scale;
    this.#set(at.x - (at.x - this.x) * ratio, at.y - (at.y - this.y) * ratio, scale);
  }

  pan(x, y) {
    this.#set(this.x + x, this.y + y, this.scale);
  }

  /** Shows everything, at a scale from `minScale` to 1. */
  fit({ margin = 24, minScale = MIN_SCALE } = {}) {
    const { width, height } = this.#size();
    const wide = (width - 2 * margin) / this.content.width;
    const high = (height - 2 * margin) / this.content.height;
    const scale = Math.min(1, Math.max(minScale, Math.min(wide, high)));
    this.#set(
      Math.max(margin, (width - this.content.width * scale) / 2),
      Math.max(margin, (height - this.content.height * scale) / 2),
      scale,
    );
    this.#fitted = { margin, minScale };
  }

  /** Pans as little as possible to show a rectangle. Its margin is smaller than that of `fit`, so a fitted view stays fitted. */
  reveal({ x, y, width, height }, margin = 20) {
    const size = this.#size();
    const left = this.x + x * this.scale;
    const top = this.y + y * this.scale;
    const right = outside(left, left + width * this.scale, size.width, margin);
    const down = outside(top, top + height * this.scale, size.height, margin);
    if (right || down) this.pan(right, down);
  }

  #set(x, y, scale) {
    const { width, height } = this.#size();
    const keep = 80; // pixels of the drawing that always stay visible
    this.#fitted = null;
    this.scale = scale;
    this.x = Math.min(width - keep, Math.max(keep - this.content.width * scale, x));
    this.y = Math.min(height - keep, Math.max(keep - this.content.height * scale, y));
    this.#group.setAttribute("transform", `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  #size() {
    const { width, height } = this.#frame.getBoundingClientRect();
    return { width: Math.max(width, 200), height: Math.max(height, 200) };
  }

  #middle() {
    const { width, height } = this.#size();
    return { x: width / 2, y: height / 2 };
  }

  #place(event) {
    const { left, top } = this.#frame.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey) this.pan(-(event.deltaX || event.deltaY) * lines, 0);
    // Browsers report a touchpad pinch as wheel events with Ctrl and small deltas.
    else this.zoom(Math.exp((-event.deltaY * lines * (event.ctrlKey ? 8 : 1)) / 700), this.#place(event));
  }

  #down(event) {
    if (event.button !== 0) return;
    if (this.#pointers.size === 0) this.#moved = 0;
    this.#pointers.set(event.pointerId, this.#place(event));
  }

  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const place = this.#place(event);
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
    this.#pointers.set(event.pointerId, place);
    this.#moved += Math.hypot(place.x - before.x, place.y - before.y);
    if (this.#moved < DRAG_DISTANCE) return;
    // Capture only now: a captured pointer sends its click to the frame, not to the link under it.
    if (!this.#frame.hasPointerCapture(event.pointerId)) this.#frame.setPointerCapture(event.pointerId);
    this.#frame.classList.add("is-dragged");
    if (others.length === 0) {
      this.pan(place.x - before.x, place.y - before.y);
    } else {
      const [other] = others;
      const ratio = distance(place, other) / Math.max(1, distance(before, other));
      this.pan((place.x - before.x) / 2, (place.y - before.y) / 2);
      this.zoom(ratio, { x: (place.x + other.x) / 2, y: (place.y + other.y) / 2 });
    }
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size === 0) this.#frame.classList.remove("is-dragged");
  }

  /** Suppresses the click at the end of a drag. */
  #click(event) {
    if (this.#moved < DRAG_DISTANCE) return;
    this.#moved = 0;
    event.preventDefault();
    event.stopPropagation();
  }
}

function outside(from, to, size, margin) {
  if (from < margin || to - from > size - 2 * margin) return margin - from;
  return to > size - margin ? size - margin - to : 0;
}

function distance(one, other) {
  return Math.hypot(one.x - other.x, one.y - other.y);
}
