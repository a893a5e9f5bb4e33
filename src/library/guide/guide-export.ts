import { createYielder } from "../../async/event-loop.ts";
import { escapeXml } from "../../base/escape-xml.ts";
import type { UnixSeconds } from "../../base/time.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { Item, ItemFigures, ItemQuery, Items } from "../contract.ts";
import type { Guide, GuideChannel, Programme } from "./guide-contract.ts";
import { FUTURE_SECONDS, PAST_SECONDS } from "./guide-fetch.ts";

interface GuideExportDependencies {
  readonly items: Pick<Items, "read" | "figures">;
  readonly guide: Pick<Guide, "match" | "programmes">;
  readonly clock: Clock;
}

/** Programmes of one channel within the exported days. */
const MAX_PROGRAMMES = 2_000;
/** Text collected for one chunk, in UTF-16 units. */
const CHUNK_UNITS = 32 * 1024;
/** Channels of one guide; their items are held in memory while it is sent. */
const MAX_CHANNELS = 20_000;

/** What a channel id cannot contain: other characters, and a dot at its start, at its end or before another one. */
const NO_ID_TEXT = /[^-a-z0-9.]|^\.|\.(?=\.|$)/giu;

/**
 * The `tvg-id` of an item in exported lists and the channel id in the exported guide: its own, or one made of its name's hash.
 *
 * CHOICE(exported-channel-id): ids have the form of host names with a dot (RFC 2838, as xmltv.dtd recommends), else `tv_validate_file` refuses
 * the guide. Own ids of this form stay. In others, `-` and its code replace each other character, and `.sluice` follows if there is no dot.
 */
export function exportedChannelId(
  { tvgId }: Pick<Item, "tvgId">,
  { hash }: Pick<ItemFigures, "hash">,
): string {
  if (tvgId === "") return `sluice.${hash.slice(0, 16)}`;
  const encoded = tvgId.replace(NO_ID_TEXT, (character) => `-${character.codePointAt(0)!.toString(16)}`);
  return encoded.includes(".") ? encoded : `${encoded}.sluice`;
}

/**
 * Streams a guide in the XMLTV format (xmltv.dtd) for the enabled items that match the query and have programmes; pull drives it.
 * Programmes of the past week are included, for players that offer catch-up.
 */
export function exportGuide(
  dependencies: GuideExportDependencies,
  query: ItemQuery,
): ReadableStream<Uint8Array> {
  const lines = guideLines(dependencies, query);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let text = "";
        while (text.length < CHUNK_UNITS) {
          const { done, value } = await lines.next();
          if (done) {
            if (text !== "") controller.enqueue(encodeUtf8(text));
            controller.close();
            return;
          }
          text += value;
        }
        controller.enqueue(encodeUtf8(text));
      },
      async cancel() {
        await lines.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

async function* guideLines(
  { items, guide, clock }: GuideExportDependencies,
  query: ItemQuery,
): AsyncGenerator<string, void> {
  const yieldIfDue = createYielder(clock);
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tv SYSTEM "xmltv.dtd">\n<tv generator-info-name="Sluice">\n';
  const now = clock.unixSeconds();
  const [from, to] = [now - PAST_SECONDS, now + FUTURE_SECONDS] as [UnixSeconds, UnixSeconds];
  const channels = new Map<string, Item>();
  const reader = items.read({ ...query, isEnabled: true });
  for (let some = await reader.next(); some.length > 0; some = await reader.next())
    for (const item of some) {
      await yieldIfDue();
      const match = guide.match(item);
      if (match === undefined || channels.size >= MAX_CHANNELS) continue;
      const id = exportedChannelId(item, items.figures(item));
      if (channels.has(id) || (await guide.programmes(item, from, to, 1)).length === 0) continue;
      channels.set(id, item);
      yield channelElement(id, item, match.channel);
    }
  for (const [id, item] of channels)
    for (const programme of await guide.programmes(item, from, to, MAX_PROGRAMMES)) {
      await yieldIfDue();
      yield programmeElement(id, programme);
    }
  yield "</tv>\n";
}

function channelElement(id: string, item: Item, channel: GuideChannel): string {
  const names = [...new Set([item.displayTitle || item.title, ...channel.names])];
  const shown = names.map((name) => `<display-name>${escapeXml(name)}</display-name>`).join("");
  return `<channel id="${escapeXml(id)}">${shown}${iconElement(channel.icon)}</channel>\n`;
}

function programmeElement(id: string, programme: Programme): string {
  const { start, stop, title, subtitle, description, categories, icon, episode } = programme;
  // The order of the elements is that of xmltv.dtd.
  return [
    `<programme start="${xmltvText(start)}" stop="${xmltvText(stop)}" channel="${escapeXml(id)}">`,
    `<title>${escapeXml(title)}</title>`,
    subtitle && `<sub-title>${escapeXml(subtitle)}</sub-title>`,
    description && `<desc>${escapeXml(description)}</desc>`,
    ...categories.map((category) => `<category>${escapeXml(category)}</category>`),
    iconElement(icon),
    episode && `<episode-num system="onscreen">${escapeXml(episode)}</episode-num>`,
    "</programme>\n",
  ].join("");
}

function iconElement(url: string): string {
  return url === "" ? "" : `<icon src="${escapeXml(url)}"/>`;
}

/** Such as `20261122190000 +0000`. */
function xmltvText(time: UnixSeconds): string {
  return `${new Date(time * 1000).toISOString().slice(0, 19).replace(/[-T:]/g, "")} +0000`;
}
