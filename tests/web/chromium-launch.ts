import type { Browser, BrowserContextOptions, Page } from "playwright-core";

/** Options of Chromium in tests: no background traffic, no sandbox, autoplay allowed. */
export const LAUNCH = {
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: [
    ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
    ...["--disable-background-networking", "--disable-component-update"],
    "--autoplay-policy=no-user-gesture-required",
  ],
};

/** The window of a viewer of a stream. */
export const VIEWER = { viewport: { width: 640, height: 480 }, timeoutMs: 100_000 } as const;

interface PageOptions extends BrowserContextOptions {
  /** How long a step may take; a busy machine is late. */
  readonly timeoutMs?: number;
  /** Gets script errors, and violations of the content security policy. */
  readonly faults?: string[];
}

/** Opens a page with cookies and storage of its own, which it closes with itself. */
export async function openPage(browser: Browser, options: PageOptions = {}): Promise<Page> {
  const { timeoutMs = 75_000, faults, ...context } = options;
  const page = await browser.newPage(context);
  page.setDefaultTimeout(timeoutMs);
  page.on("pageerror", (error) => faults?.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content.Security|Uncaught/i.test(message.text()))
      faults?.push(message.text());
  });
  return page;
}
