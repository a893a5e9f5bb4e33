import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Image, Item } from "../../src/library/contract.ts";
import { type ControlCall, controlMethod } from "./method.ts";
import { integer, required, text } from "./params.ts";
import { imageResult } from "./results.ts";

/** Pictures of channels (interface: get_channel_icon), and of other servers by their URL. */
export const imageMethods = [
  controlMethod({
    name: "get_channel_icon",
    summary: "The picture of an item: an uploaded logo, else the one that its list names",
    isPublic: true,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({
      id: integer.describe("An item of the playlist"),
      common_name: text.describe("The name of a channel"),
      item_hash: text.describe("The hash or hash_v2 of an item"),
    }),
    result: imageResult,
    async run(params, call) {
      const item = await itemMeant(params, call);
      return imageAnswer(item && (await iconOf(item, call)), call);
    },
  }),
];

/** Not of the interface's tables: deployed pages show posters through it. */
export const extraImageMethods = [
  controlMethod({
    name: "get_image",
    summary: "A picture of another server, fetched, checked and kept here",
    isPublic: false,
    isRemote: true,
    isOpenToPages: false,
    isExtra: true,
    params: z.object({ url: required(text).describe("http or https") }),
    result: imageResult,
    async run({ url }, call) {
      const { allowPrivateUrls, signal } = call;
      return imageAnswer(await call.library.images.fetch(url, { allowPrivateUrls, signal }), call);
    },
  }),
];

interface IconParams {
  readonly id?: number | undefined;
  readonly common_name?: string | undefined;
  readonly item_hash?: string | undefined;
}

/** CHOICE(channel-icon): `id` is an item's; a name is a channel's, as its item says it; a hash is an item's too. */
async function itemMeant(params: IconParams, { library }: ControlCall): Promise<Item | undefined> {
  const { id, common_name, item_hash } = params;
  const { items } = library;
  const hasIcon = (item: Item) => items.figures(item).icons.length > 0;
  if (id !== undefined) return items.get(id);
  if (common_name !== undefined) {
    const { items: named } = await items.query({ name: common_name, limit: MAX_NAMED });
    const name = common_name.toLowerCase();
    const isNamed = (item: Item) => [item.title, item.tvgName].some((each) => each.toLowerCase() === name);
    return named.find((item) => isNamed(item) && hasIcon(item)) ?? named.find(hasIcon);
  }
  if (item_hash === undefined)
    throw new SluiceError("missing_parameter", "give one of id, common_name, item_hash");
  const { items: alike } = await items.query({ hash: item_hash, limit: MAX_NAMED });
  return alike.find(hasIcon);
}

/** Items of one name or hash that are looked at for a picture. */
const MAX_NAMED = 50;

/** The first of its pictures that can be had. */
async function iconOf(
  item: Item,
  { library, allowPrivateUrls, signal }: ControlCall,
): Promise<Image | undefined> {
  const { images, items } = library;
  for (const icon of items.figures(item).icons) {
    const image =
      "imageId" in icon
        ? await images.get(icon.imageId)
        : await images.fetch(icon.url, { allowPrivateUrls, signal });
    if (image) return image;
  }
  return undefined;
}

/** The picture, under headers that let browsers show it and do nothing else with it. */
function imageAnswer(image: Image | undefined, { context }: ControlCall): Response {
  if (!image) return context.text("no picture\n", 404);
  return context.body(image.bytes, 200, {
    "content-type": image.mime,
    "content-length": String(image.bytes.length),
    "cache-control": "private, max-age=86400",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
  });
}
