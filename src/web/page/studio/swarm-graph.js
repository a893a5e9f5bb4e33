// @ts-check
import { svg } from "../parts/chart.js";
import { bytesText } from "../parts/figures.js";
import { t } from "../parts/text.js";

/** @typedef {import("../parts/live-data.js").TransferFigures["nodes"]} Nodes */

const SIZE = 320;
const CENTRE = SIZE / 2;
/** The rings of the peers that this machine supplies, and of those that get the stream from other viewers. */
const INNER = 78;
const OUTER = 138;
/** Below this rate a peer gets protocol messages only. */
const MIN_BYTES_PER_SECOND = 1_000;

/**
 * Draws the swarm of a broadcast: this machine in the centre, the viewers that it supplies around it with lines as wide as their
 * share, and outside the viewers that get the stream from other viewers.
 *
 * @param {Element} image
 * @param {Nodes} nodes
 */
export function drawSwarm(image, nodes) {
  const supplied = nodes.filter(({ up }) => up >= MIN_BYTES_PER_SECOND);
  const others = nodes.filter(({ up }) => up < MIN_BYTES_PER_SECOND);
  const fastest = Math.max(1, ...supplied.map(({ up }) => up));
  const inner = placed(supplied, INNER);
  const outer = placed(others, OUTER);
  const lines = [
    ...inner.map(({ x, y, node }) =>
      svg("line", { x1: CENTRE, y1: CENTRE, x2: x, y2: y, "stroke-width": 1 + (4 * node.up) / fastest }),
    ),
    // The engine does not know which viewer supplies which, so the line leads to the nearest one.
    ...outer.flatMap(({ x, y }) => {
      const nearest = [...inner].sort((a, b) => distance(a, { x, y }) - distance(b, { x, y }))[0];
      return nearest === undefined
        ? []
        : [svg("line", { x1: nearest.x, y1: nearest.y, x2: x, y2: y, class: "guess" })];
    }),
  ];
  const dots = [...inner, ...outer].map(({ x, y, node }) => {
    const dot = svg("circle", { cx: x, cy: y, r: 7, class: node.up >= MIN_BYTES_PER_SECOND ? "" : "other" });
    const title = svg("title", {});
    title.textContent = t("{program}: {speed} from this machine", {
      program: node.client || t("Unknown program"),
      speed: `${bytesText(node.up)}/s`,
    });
    dot.append(title);
    return dot;
  });
  image.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
  image.setAttribute(
    "aria-label",
    t("{direct} viewers get the stream from this machine, {others} from other viewers", {
      direct: supplied.length,
      others: others.length,
    }),
  );
  image.replaceChildren(...lines, svg("circle", { cx: CENTRE, cy: CENTRE, r: 13, class: "own" }), ...dots);
}

/**
 * @param {Nodes} nodes
 * @param {number} radius
 */
function placed(nodes, radius) {
  return nodes.map((node, i) => {
    const angle = (2 * Math.PI * i) / nodes.length - Math.PI / 2;
    return { node, x: CENTRE + radius * Math.cos(angle), y: CENTRE + radius * Math.sin(angle) };
  });
}

/**
 * @param {{ x: number, y: number }} a
 * @param {{ x: number, y: number }} b
 */
function distance(a, b) {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
