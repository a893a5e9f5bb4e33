import type { Page } from "playwright-core";
import type { ViewerFigures } from "../../src/web/page/viewer/messages.ts";

export interface Facts {
  readonly figures?: ViewerFigures;
  readonly isFallback: boolean;
}

/** Returns what the page for viewers has measured. */
export function factsOf(page: Page): Promise<Facts> {
  return page.evaluate(() => (globalThis as unknown as { sluiceViewer: Facts }).sluiceViewer);
}

export async function figuresOf(page: Page): Promise<ViewerFigures> {
  return (await factsOf(page)).figures!;
}

/** Waits until the facts of a page fulfil a condition, which is tested here. */
export async function until(page: Page, isMet: (facts: Facts) => boolean): Promise<void> {
  for (let facts: Facts = { isFallback: false }; ; facts = await factsOf(page)) {
    if (facts.figures !== undefined && isMet(facts)) return;
    await page.waitForTimeout(200);
  }
}

/** Waits until `seconds` more of the video have been shown. */
export async function plays(page: Page, seconds: number): Promise<void> {
  const frames = () => document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0;
  const before = await page.evaluate(frames);
  await page.waitForFunction(
    (min) => (document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0) >= min,
    before + 25 * seconds,
  );
}
