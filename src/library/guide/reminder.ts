import type { UnixSeconds } from "../../base/time.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { Item, Items } from "../contract.ts";
import type { Guide, Programme } from "./guide-contract.ts";

interface ReminderDependencies {
  readonly items: Pick<Items, "figures">;
  readonly guide: Pick<Guide, "programmes">;
  readonly clock: Clock;
}

/** A calendar file for a programme. */
export interface Reminder {
  /** The title of the programme. */
  readonly title: string;
  readonly file: string;
}

/** Programmes that a guide has at the same time by mistake. */
const MAX_OVERLAPPING = 10;

/**
 * Returns a calendar file for the programme of an item that starts at `start`; undefined if the guide has none. `url` is where the
 * channel is played.
 */
export async function reminderOf(
  { items, guide, clock }: ReminderDependencies,
  item: Item,
  start: UnixSeconds,
  url: string,
): Promise<Reminder | undefined> {
  const found = await guide.programmes(item, start, (start + 1) as UnixSeconds, MAX_OVERLAPPING);
  const programme = found.find((each) => each.start === start);
  if (programme === undefined) return undefined;
  const file = reminderFile({
    // Sources of one channel have the same hash.
    uid: `${start}-${items.figures(item).hash}@sluice`,
    programme,
    channel: item.displayTitle || item.title,
    url,
    now: clock.unixSeconds(),
  });
  return { title: programme.title, file };
}

interface ReminderOptions {
  /** Identifies the event: a calendar replaces an event with the same one. */
  readonly uid: string;
  readonly programme: Programme;
  /** The name of the channel. */
  readonly channel: string;
  /** Where the channel is played. */
  readonly url: string;
  readonly now: UnixSeconds;
}

/** Bytes of a line without its end (RFC 5545, 3.1). */
const MAX_LINE_BYTES = 75;

/** Returns a calendar file (iCalendar, RFC 5545) with a programme as an event, and an alarm five minutes before it starts. */
function reminderFile({ uid, programme, channel, url, now }: ReminderOptions): string {
  const { start, stop, title, subtitle, description } = programme;

  const details = [subtitle, description].filter((text) => text !== "").join("\n");
  return [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Sluice//Programme guide//EN",
    "BEGIN:VEVENT",
    `UID:${textValue(uid)}`,
    `DTSTAMP:${utcTime(now)}`,
    `DTSTART:${utcTime(start)}`,
    `DTEND:${utcTime(stop)}`,
    `SUMMARY:${textValue(title)}`,
    `LOCATION:${textValue(channel)}`,
    ...(details === "" ? [] : [`DESCRIPTION:${textValue(details)}`]),
    `URL:${url}`,
    "BEGIN:VALARM",
    "ACTION:DISPLAY",
    "TRIGGER:-PT5M",
    `DESCRIPTION:${textValue(title)}`,
    "END:VALARM",
    "END:VEVENT",
    "END:VCALENDAR",
  ]
    .map(folded)
    .join("");
}

/** Escapes a text (RFC 5545, 3.3.11) and removes control characters, which a calendar file may not contain. */
function textValue(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/(?![\t\n])\p{Cc}/gu, "")
    .replace(/[\\;,]/g, "\\$&")
    .replace(/\n/g, "\\n");
}

/** Such as `20261122T190000Z`. */
function utcTime(time: UnixSeconds): string {
  return `${new Date(time * 1000).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}

/** Ends a line, and breaks it before a character that does not fit; the next line starts with a space (RFC 5545, 3.1). */
function folded(line: string): string {
  let text = "";
  let bytes = 0;
  for (const character of line) {
    const size = encodeUtf8(character).length;
    if (bytes + size > MAX_LINE_BYTES) {
      text += "\r\n ";
      bytes = 1;
    }
    text += character;
    bytes += size;
  }
  return `${text}\r\n`;
}
