import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import type { OpenOptions } from "../../src/outbound/request.ts";

/** The response of a URL. */
export interface ListAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | ReadableStream<Uint8Array>;
}

/** Fake list servers that replace the outbound client. */
export class ListServer implements Pick<Outbound, "open"> {
  readonly answers = new Map<
    string,
    ListAnswer | ((options: OpenOptions) => ListAnswer | Promise<ListAnswer>)
  >();
  readonly asked: { readonly url: string; readonly options: OpenOptions }[] = [];
  /** Bodies that are being read, and their highest number. */
  opened = 0;
  most = 0;

  async open(url: string, options: OpenOptions) {
    this.asked.push({ url, options });
    const found = this.answers.get(url);
    if (!found)
      throw new SluiceError("url_unreachable", "the playlist could not be fetched: nothing answers there");
    this.most = Math.max(this.most, ++this.opened);
    try {
      const answer = typeof found === "function" ? await found(options) : found;
      const { status = 200, headers = {}, body = "" } = answer;
      const stream = typeof body === "string" ? textStream(body) : body;
      return { status, headers: new Headers(headers), body: stream, finalUrl: url };
    } finally {
      this.opened--;
    }
  }
}

/** A text as a body. */
export function textStream(text: string): ReadableStream<Uint8Array> {
  let isSent = false;
  return new ReadableStream({
    pull(controller) {
      if (isSent || text === "") return controller.close();
      isSent = true;
      controller.enqueue(encodeUtf8(text));
    },
  });
}

/** A list of channels, each `title` or `title link`. */
export function listOf(channels: readonly string[], header = "#EXTM3U"): string {
  const entries = channels.map((channel) => {
    const [title, link = `http://tv.example/${title}`] = channel.split(" ");
    return `#EXTINF:-1,${title}\n${link}\n`;
  });
  return `${header}\n${entries.join("")}`;
}
