import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "../parts/process.ts";

/** Where Debian's package `firefox-esr` has it. */
export const FIREFOX = "/usr/bin/firefox-esr";

/** Sound without a click before it, as in Chromium's tests, and no requests of the browser itself. */
const PREFERENCES = {
  "media.autoplay.default": 0,
  "app.normandy.enabled": false,
  "browser.safebrowsing.downloads.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "datareporting.policy.dataSubmissionEnabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
};
const POLL_MS = 100;
/** A busy machine answers late. */
const MAX_POLLS = 600;

/** What the remote end answers (WebDriver BiDi, "Transport"). */
interface Answer {
  readonly id?: number;
  readonly type: "success" | "error" | "event";
  readonly result?: never;
  readonly error?: string;
  readonly message?: string;
  readonly method?: string;
  readonly params?: { readonly level: string; readonly text: string };
}

/** One page in a headless Firefox, operated over WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/). */
export class Firefox {
  /** Errors of the page's scripts, and violations of its policy. */
  readonly faults: string[] = [];
  #socket;
  #end;
  #context = "";
  #lastId = 0;
  #waiting = new Map<number, (answer: Answer) => void>();

  private constructor(socket: WebSocket, end: () => Promise<void>) {
    this.#socket = socket;
    this.#end = end;
    socket.onmessage = ({ data }) => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.method === "log.entryAdded" && answer.params?.level === "error")
        this.faults.push(answer.params.text);
      if (answer.id === undefined) return;
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    };
  }

  /** Starts Firefox with a new profile, and opens a page of `width` × `height` CSS pixels. */
  static async start(width: number, height: number): Promise<Firefox> {
    const profile = await mkdtemp(join(tmpdir(), "sluice-firefox-"));
    const lines = Object.entries(PREFERENCES).map(
      ([name, value]) => `user_pref(${JSON.stringify(name)}, ${value});`,
    );
    await writeFile(join(profile, "user.js"), lines.join("\n"));
    const args = ["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", profile];
    const browser = startProcess(FIREFOX, args, { env: { HOME: profile } });
    const end = async () => {
      await browser.stop();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    };
    try {
      const line = await browser.line((each) => each.includes("WebDriver BiDi listening on"));
      const address = /ws:\S+/.exec(line)?.[0];
      const socket = new WebSocket(`${address}/session`);
      await new Promise((resolve, reject) => {
        socket.onopen = resolve;
        socket.onerror = () => reject(new Error(`no connection to ${address}`));
      });
      const firefox = new Firefox(socket, end);
      await firefox.#send("session.new", { capabilities: {} });
      await firefox.#send("session.subscribe", { events: ["log.entryAdded"] });
      const { contexts } = await firefox.#send<{ contexts: { context: string }[] }>(
        "browsingContext.getTree",
        {},
      );
      firefox.#context = contexts[0]!.context;
      await firefox.#send("browsingContext.setViewport", {
        context: firefox.#context,
        viewport: { width, height },
      });
      return firefox;
    } catch (error) {
      await end();
      throw error;
    }
  }

  async #send<Result>(method: string, params: object): Promise<Result> {
    const id = ++this.#lastId;
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { type, result, error, message } = await answered;
    if (type === "error") throw new Error(`${method}: ${error}: ${message}`);
    return result!;
  }

  /** Loads a page; resolves when its documents and scripts are loaded. */
  async open(url: string): Promise<void> {
    await this.#send("browsingContext.navigate", { context: this.#context, url, wait: "complete" });
  }

  /** Loads the page again. */
  async reload(): Promise<void> {
    await this.#send("browsingContext.reload", { context: this.#context, wait: "complete" });
  }

  /** Runs an expression in the page, and waits if it is a promise; its value must be JSON. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const answer = await this.#send<{
      result: { value: string };
      exceptionDetails?: { text: string };
    }>("script.evaluate", {
      expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`,
      target: { context: this.#context },
      awaitPromise: true,
    });
    if (answer.exceptionDetails) throw new Error(`${expression}: ${answer.exceptionDetails.text}`);
    return JSON.parse(answer.result.value) as Value;
  }

  /** Waits until an expression is true in the page. */
  async until(expression: string): Promise<void> {
    for (let polls = 0; polls < MAX_POLLS; polls++) {
      if (await this.evaluate<boolean>(`!!(${expression})`)) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new Error(`never true: ${expression}`);
  }

  /** Waits for a visible element, and clicks in its middle. */
  async click(selector: string): Promise<void> {
    const element = `document.querySelector(${JSON.stringify(selector)})`;
    await this.until(`${element}?.getClientRects().length`);
    const [x, y] = await this.evaluate<[number, number]>(`(() => {
      const found = ${element};
      found.scrollIntoView({ block: "center" });
      const { left, right, top, bottom } = found.getBoundingClientRect();
      return [Math.round((left + right) / 2), Math.round((top + bottom) / 2)];
    })()`);
    const actions = [
      { type: "pointerMove", x, y },
      { type: "pointerDown", button: 0 },
      { type: "pointerUp", button: 0 },
    ];
    await this.#send("input.performActions", {
      context: this.#context,
      actions: [{ type: "pointer", id: "mouse", actions }],
    });
  }

  /** Types text into the focused field, or presses one key (WebDriver, "Keyboard actions": U+E000 and above). */
  async type(text: string): Promise<void> {
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.#send("input.performActions", {
      context: this.#context,
      actions: [{ type: "key", id: "keyboard", actions }],
    });
  }

  /** Returns the page as a PNG. */
  async screenshot(): Promise<Uint8Array> {
    const { data } = await this.#send<{ data: string }>("browsingContext.captureScreenshot", {
      context: this.#context,
    });
    return Buffer.from(data, "base64");
  }

  /** Ends Firefox and deletes its profile. */
  async close(): Promise<void> {
    this.#socket.close();
    await this.#end();
  }
}
