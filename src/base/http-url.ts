/** The platform's URL parser. It is pure and the same on all runtimes, so pure code may use it. */
declare const URL: {
  canParse(text: string): boolean;
  new (text: string): HttpUrl & { readonly protocol: string };
};

/** An http or https URL (WHATWG URL standard). */
export interface HttpUrl {
  /** The whole URL in canonical form. */
  readonly href: string;
  /** The path with its leading `/`, percent-encoded. */
  readonly pathname: string;
  /** The query with its leading `?`, or an empty string. */
  readonly search: string;
}

/** Longer URLs are refused; servers do not accept them. */
const MAX_URL_LENGTH = 16 * 1024;

/** Parses an http or https URL; undefined if `text` is anything else. */
export function parseHttpUrl(text: string): HttpUrl | undefined {
  if (text.length > MAX_URL_LENGTH || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  return new URL(text);
}
