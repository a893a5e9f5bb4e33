/** One measured size and its value. */
export interface Point {
  readonly size: number;
  readonly value: number;
}

const [WIDTH, HEIGHT] = [320, 220];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 14, 34, 34];

/**
 * Draws panels beside each other as one SVG. Both axes are logarithmic, so that linear growth is a line of the slope of
 * the dashed one, and anything worse is steeper.
 */
export function charts(
  panels: readonly { readonly title: string; readonly points: readonly Point[] }[],
): string {
  const width = WIDTH * panels.length;
  const body = panels.map(
    ({ title, points }, i) => `<g transform="translate(${i * WIDTH} 0)">${panel(title, points)}</g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}" font-family="sans-serif" font-size="11">
<title>${panels.map(({ title }) => title).join("; ")}</title>
<rect width="${width}" height="${HEIGHT}" fill="#fff"/>
${body.join("\n")}
</svg>
`;
}

function panel(title: string, points: readonly Point[]): string {
  const sizes = points.map(({ size }) => size);
  const values = points.map(({ value }) => Math.max(value, 0.01));
  const [fromX, toX] = [Math.log10(Math.min(...sizes)), Math.log10(Math.max(...sizes))];
  const first = values[0]!;
  const [fromY, toY] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values, first * 10))];
  const x = (size: number) =>
    LEFT + ((Math.log10(size) - fromX) / (toX - fromX || 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) =>
    HEIGHT - BOTTOM - ((Math.log10(value) - fromY) / (toY - fromY || 1)) * (HEIGHT - TOP - BOTTOM);
  const line = points.map(({ size }, i) => `${x(size).toFixed(1)},${y(values[i]!).toFixed(1)}`).join(" ");
  // Linear growth from the first point, as far as the panel reaches.
  const decades = Math.min(toX - fromX, toY - Math.log10(first));
  const linear = `${x(sizes[0]!).toFixed(1)},${y(first).toFixed(1)} ${x(10 ** (fromX + decades)).toFixed(1)},${y(first * 10 ** decades).toFixed(1)}`;
  const marks = points.map(({ size, value }, i) => {
    const [atX, atY] = [x(size).toFixed(1), y(values[i]!)];
    return `<circle cx="${atX}" cy="${atY.toFixed(1)}" r="3" fill="#0b62a4"/><text x="${atX}" y="${(atY - 7).toFixed(1)}" text-anchor="${i === 0 ? "start" : "end"}">${value.toPrecision(3)}</text><text x="${atX}" y="${HEIGHT - 14}" text-anchor="${i === 0 ? "start" : "end"}">${size.toLocaleString("en")}</text>`;
  });
  return `<text x="${LEFT}" y="18" font-weight="bold">${title}</text>
<path d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}" fill="none" stroke="#888"/>
<polyline points="${linear}" fill="none" stroke="#aaa" stroke-dasharray="4 3"/>
<polyline points="${line}" fill="none" stroke="#0b62a4" stroke-width="2"/>
${marks.join("\n")}`;
}
