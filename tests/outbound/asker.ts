import { readFileSync } from "node:fs";

// Asks for the URLs in the file that is named, eight at a time, and prints how often each status came. With --until-it-answers
// it asks for the first one until something answers.

const [path, mode] = process.argv.slice(2);
const urls = JSON.parse(readFileSync(path!, "utf8")) as string[];

/** What is not there within so long is given up; no answer of the engine takes longer than its own limits. */
const PATIENCE_MS = 30_000;

async function status(url: string): Promise<string> {
  try {
    const answer = await fetch(url, { redirect: "follow", signal: AbortSignal.timeout(PATIENCE_MS) });
    await answer.body?.cancel();
    return String(answer.status);
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
      const came = await status(urls[next++]!);
      counts.set(came, (counts.get(came) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  console.log(JSON.stringify(Object.fromEntries(counts)));
}
process.exit(0);
