/** What {@link playOrder} needs of a file. */
interface OrderedFile {
  readonly index: number;
  readonly name: string;
  readonly size: number;
  readonly mime: string;
  readonly isPlayable: boolean;
}

/** Smaller files than this share of the largest one are samples, trailers or openings. */
const PART_SHARE = 1 / 4;
/** Marks of a part in a file name: `S01E02`, `1x02`, `Ep 2`, `Part 2`, `CD2`. */
const PART_MARK =
  /s\d{1,2}[ ._-]*e\d{1,3}|(?<!\d)\d{1,2}x\d{2,3}(?!\d)|(?<![a-z])(?:e|ep|episode|part|pt|cd|disc)[ ._-]*\d{1,3}(?!\d)/i;

const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * Returns the files to play one after another: the parts of a series or an album in order, else only the largest playable file; the
 * largest of all files if none is playable by its name, because names can be wrong. Empty only if there are no files.
 *
 * CHOICE(series): files of one kind (video or audio) and of at least a quarter of the largest one's size are parts if most of their
 * names have an episode mark, or if a number follows what all names have in common (`01 - Pilot`, `Show 12`).
 */
export function playOrder<File extends OrderedFile>(files: readonly File[]): File[] {
  const playable = files.filter(({ isPlayable }) => isPlayable);
  const main = largest(playable) ?? largest(files);
  if (!main) return [];
  const kind = kindOf(main);
  const parts = playable.filter((file) => kindOf(file) === kind && file.size >= main.size * PART_SHARE);
  const marked = parts.filter(({ name }) => PART_MARK.test(lastOf(name)));
  const numbered = marked.length > parts.length / 2 ? marked : haveNumbers(parts) ? parts : [];
  if (numbered.length < 2) return [main];
  return numbered.sort((a, b) => natural.compare(a.name, b.name) || a.index - b.index);
}

function largest<File extends OrderedFile>(files: readonly File[]): File | undefined {
  return files.reduce<File | undefined>(
    (best, file) => (best && best.size >= file.size ? best : file),
    undefined,
  );
}

function kindOf({ mime }: OrderedFile): string {
  return mime.slice(0, mime.indexOf("/"));
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Returns true if the names differ first in a number. */
function haveNumbers(files: readonly OrderedFile[]): boolean {
  const [first = "", ...others] = files.map(({ name }) => name);
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length++;
  const prefix = first.slice(0, length).replace(/\d+$/, "");
  const numbers = [first, ...others].map((name) => /^\d+/.exec(name.slice(prefix.length))?.[0]);
  return numbers.every((number) => number !== undefined) && new Set(numbers).size > 1;
}
