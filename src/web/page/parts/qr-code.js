// @ts-check
import { t } from "./text.js";

/**
 * Creates the QR code of a text as one SVG path. Throws if the text is too long for a QR code.
 *
 * @param {string} text
 */
export async function qrCode(text) {
  const { encode } = await import("uqr");
  const { data, size } = encode(text, { border: 2 });
  let path = "";
  for (const [y, row] of data.entries())
    for (const [x, isDark] of row.entries()) if (isDark) path += `M${x} ${y}h1v1h-1z`;
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", t("QR code of the link"));
  const shape = document.createElementNS(namespace, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}
