import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Image, Item } from "../../src/library/contract.ts";
import { controlFailure } from "../http/responses.ts";
import { type ControlCall, type ControlMethod, controlMethod, PRIVATE, PUBLIC } from "./method.ts";
import { integer, required, text } from "./params.ts";

/** An image, sent as a binary response. */
const imageResult = z.unknown().meta({
  type: "string",
  format: "binary",
  contentMediaType: "image/*",
  description: "The image; status 404 and an error as JSON if there is none",
});

/** `get_channel_icon` (interface: Service methods). */
export const getChannelIcon: ControlMethod = controlMethod({
  name: "get_channel_icon",
  summary: "Returns the image of an item: an uploaded logo, else the logo from its playlist",
  ...PUBLIC,
  params: z.object({
    id: integer.describe("The id of an item"),
    common_name: text.describe("The name of a channel"),
    item_hash: text.describe("The hash or hash_v2 of an item"),
  }),
  result: imageResult,
  async run(params, call) {
    const item = await requestedItem(params, call);
    return imageResponse(item && (await iconOf(item, call)), call);
  },
});

/** `get_image`: an extension through which deployed pages show posters. */
export const getImage: ControlMethod = controlMethod({
  name: "get_image",
  summary: "Fetches, validates and caches an image of another server",
  ...PRIVATE,
  isExtra: true,
  params: z.object({ url: required(text).describe("An http or https URL") }),
  result: imageResult,
  async run({ url }, call) {
    const { allowPrivateUrls, signal } = call;
    return imageResponse(await call.library.images.fetch(url, { allowPrivateUrls, signal }), call);
  },
});

interface IconParams {
  readonly id?: number | undefined;
  readonly common_name?: string | undefined;
  readonly item_hash?: string | undefined;
}

/** CHOICE(channel-icon): `id` is an item id, `common_name` a channel name as in its item, `item_hash` the hash of an item. */
async function requestedItem(params: IconParams, { library }: ControlCall): Promise<Item | undefined> {
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

/** The maximum number of items with the same name or hash that are searched for an icon. */
const MAX_NAMED = 50;

/** Returns the first icon of an item that is stored or can be fetched. */
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

/** Builds a response whose headers allow browsers only to display the image. */
function imageResponse(image: Image | undefined, { context, apiVersion }: ControlCall): Response {
  if (!image) {
    const error = new SluiceError("unknown_item", "there is no image");
    const { body, headers } = controlFailure(context, String(apiVersion), error);
    return new Response(body, { status: 404, headers });
  }
  return context.body(image.bytes, 200, {
    "content-type": image.mime,
    "content-length": String(image.bytes.length),
    "cache-control": "private, max-age=86400",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
  });
}
