import { readFileSync } from "node:fs";

// Requests the URLs in the given JSON file, eight at a time, and prints how often each status occurred. With
// --until-it-answers it repeats the first request until it succeeds.

const [path, mode] = process.argv.slice(2);
const urls = JSON.parse(readFileSync(path!, "utf8")) as string[];

/** Longer than any limit of the engine. */
const TIMEOUT_MS = 30_000;

async function status(url: string): Promise<string> {
  try {
    const response = await fetch(url, { redirect: "follow", signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.body?.cancel();
    return String(response.status);
  } catch (thrown) {
    return (thrown as Error).name;
  }
}

if (mode === "--until-it-answers") {
  for (let tries = 0; tries < 400 && (await status(urls[0]!)) !== "200"; tries++)
    await new Promise((resolve) => setTimeout(resolve, 25));
} else {
  const counts = new Map<string, number>();
  let next = 0;
  const work = async () => {
    while (next < urls.length) {
      const result = await status(urls[next++]!);
      counts.set(result, (counts.get(result) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  console.log(JSON.stringify(Object.fromEntries(counts)));
}
process.exit(0);
