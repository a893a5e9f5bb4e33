import * as v from "valibot";
import type { BucketPlace } from "../outbound/bucket.ts";
import { parseSize, type SettingKind } from "./kinds.ts";

/** The URL of a bucket; a secret because it has a key. An empty text means none. */
export function bucketUrl(): SettingKind<BucketPlace | undefined> {
  return {
    placeholder: "URL",
    isSecret: true,
    expected:
      "s3://KEY:SECRET@bucket[/prefix][?endpoint=URL&region=NAME&limit=SIZE], with % escapes in the key and the secret",
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.transform((text) => (text === "" ? undefined : (parseBucketUrl(text) ?? null))),
      v.custom<BucketPlace | undefined>((value) => value !== null),
    ),
  };
}

/** Parses the URL of a bucket. Returns undefined if it is malformed or has unknown options. */
function parseBucketUrl(text: string): BucketPlace | undefined {
  const match =
    /^s3:\/\/([^:@/?]+):([^:@/?]+)@([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w.-]+)*)\/?(?:\?(.*))?$/.exec(
      text,
    );
  if (!match) return undefined;
  const [keyId, secret] = [unescaped(match[1]!), unescaped(match[2]!)];
  const options = new Map(new URLSearchParams(match[5]));
  const region = options.get("region") ?? "us-east-1";
  const endpoint = endpointOf(options.get("endpoint") ?? `https://s3.${region}.amazonaws.com`);
  const limit = options.get("limit");
  const limitBytes = limit === undefined ? undefined : parseSize(limit);
  for (const name of ["endpoint", "region", "limit"]) options.delete(name);
  if (!keyId || !secret || !endpoint || !/^[\w-]{1,64}$/.test(region) || options.size > 0) return undefined;
  if (limit !== undefined && limitBytes === undefined) return undefined;
  const prefix = match[4] ? `${match[4].slice(1)}/` : "";
  return { endpoint, bucket: match[3]!, prefix, region, keyId, secret, limitBytes };
}

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // A % that is no escape.
  }
}

/** Returns the origin of an http or https URL without path, query and credentials. */
function endpointOf(text: string): string | undefined {
  if (!/^https?:\/\/[^/?#@]+\/?$/.test(text) || !URL.canParse(text)) return undefined;
  return new URL(text).origin;
}
