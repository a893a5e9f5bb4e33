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

/** The attempts of {@link until}, and the time between them: a minute, so that a test whose page does not get there can begin again. */
const ATTEMPTS = 300;
const ATTEMPT_MS = 200;

/** Waits until the facts of a page fulfil a condition, which is tested here. Throws an error with the last facts if they do not. */
export async function until(page: Page, isMet: (facts: Facts) => boolean): Promise<void> {
  let facts: Facts | undefined;
  for (let i = 0; i < ATTEMPTS; i++) {
    facts = await factsOf(page);
    if (facts?.figures !== undefined && isMet(facts)) return;
    await page.waitForTimeout(ATTEMPT_MS);
  }
  throw new Error(`the page never fulfilled ${isMet}: ${JSON.stringify(facts)}`);
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
