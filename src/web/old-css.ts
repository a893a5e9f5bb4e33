/** A value of several values; spaces inside of functions do not separate them. */
const VALUE_SEPARATOR = / (?![^(]*\))/;
const SHORT_FORM = /(?<=[{;])(inset|(?:margin|padding)-(?:inline|block)):([^;{}]+)/g;

/**
 * Rewrites what esbuild leaves in a minified style sheet and browsers of 2018 do not know: gaps of flex containers, for which
 * `old-browsers.js` sets the class `no-flex-gap`, and short forms: `inset`, and logical margins and paddings.
 */
export function forOldBrowsers(css: string): string {
  return css.replaceAll(SHORT_FORM, longForm).replaceAll(/([^{}]+)\{([^{}]*)\}/g, withMargins);
}

function longForm(_: string, name: string, value: string): string {
  const [first, second = first, third = first, fourth = second] = value.split(VALUE_SEPARATOR);
  return name === "inset"
    ? `top:${first};right:${second};bottom:${third};left:${fourth}`
    : `${name}-start:${first};${name}-end:${second}`;
}

function withMargins(rule: string, selectors: string, body: string): string {
  const gap = /(?:^|;)gap:([^;]+)/.exec(body)?.[1];
  if (gap === undefined || !/(?:^|;)display:(?:inline-)?flex/.test(body)) return rule;
  const isColumn = /flex-direction:column/.test(body);
  // Of two values, the first one is between rows.
  const [row, column = row] = gap.split(VALUE_SEPARATOR);
  const children = selectors.split(",").map((selector) => `.no-flex-gap ${selector.trim()}>*+*`);
  return `${rule}${children.join()}{margin-${isColumn ? "block" : "inline"}-start:${isColumn ? row : column}}`;
}
