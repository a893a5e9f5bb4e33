/** The platform's reader of URLs: values in, values out, and the same on all runtimes, so it may be used here, too. */
declare const URL: {
  canParse(text: string): boolean;
  new (text: string): HttpUrl & { readonly protocol: string };
};

/** A URL of http or https, as the WHATWG's URL standard reads it. */
export interface HttpUrl {
  /** The whole, in its canonical form. */
  readonly href: string;
  /** With its `/`; percent-encoded. */
  readonly pathname: string;
  /** The query with its `?`; empty where there is none. */
  readonly search: string;
}

/** Longer ones are refused: no server takes them. */
const MAX_URL_LENGTH = 16 * 1024;

/** Reads a URL of http or https; undefined where it is none. */
export function parseHttpUrl(text: string): HttpUrl | undefined {
  if (text.length > MAX_URL_LENGTH || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  return new URL(text);
}
