import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { BucketPlace } from "../../src/outbound/bucket.ts";

/** A server with one bucket, which verifies the signature and the content hash of each request. */
export interface S3Server {
  /** The bucket, with the prefix `pieces/`. */
  readonly place: BucketPlace;
  /** By key. */
  readonly objects: Map<string, { bytes: Uint8Array; modified: Date }>;
  /** Method and path of all requests so far. */
  readonly asked: string[];
  close(): Promise<void>;
}

const [KEY_ID, SECRET, REGION, BUCKET] = ["AKIDEXAMPLE", "wJalr/XUtn+FEMI", "eu-test-1", "films"];

/** Starts a server; `misbehave` returns true if it has sent the response itself. */
export async function startS3Server(
  misbehave: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<S3Server> {
  const objects: S3Server["objects"] = new Map();
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "", `http://${request.headers.host}`);
    asked.push(`${request.method} ${url.pathname}`);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    if (misbehave(request, response)) return;
    const body = Buffer.concat(parts);
    const problem = signatureProblem(request, url, body);
    if (problem) return fail(response, 403, problem);
    const key = url.pathname.slice(`/${BUCKET}/`.length);
    if (request.method === "GET" && key === "") return list(response, objects, url.searchParams);
    if (request.method === "PUT") objects.set(key, { bytes: body, modified: new Date() });
    if (request.method === "DELETE") objects.delete(key);
    if (request.method !== "GET") {
      response.writeHead(request.method === "PUT" ? 200 : 204).end();
      return;
    }
    const found = objects.get(key)?.bytes;
    if (!found) return fail(response, 404, "NoSuchKey");
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    if (first === undefined) {
      response.writeHead(200, { "content-length": found.length }).end(found);
      return;
    }
    const range = found.subarray(Number(first), Number(last) + 1);
    const contentRange = `bytes ${first}-${Number(first) + range.length - 1}/${found.length}`;
    response.writeHead(206, { "content-range": contentRange, "content-length": range.length }).end(range);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    place: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket: BUCKET,
      prefix: "pieces/",
      region: REGION,
      keyId: KEY_ID,
      secret: SECRET,
      limitBytes: undefined,
    },
    objects,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The setting `cache` for a place. */
export function bucketUrlOf({ endpoint, bucket, prefix, region, keyId, secret }: BucketPlace): string {
  const query = new URLSearchParams({ endpoint, region });
  return `s3://${keyId}:${encodeURIComponent(secret)}@${bucket}/${prefix.slice(0, -1)}?${query}`;
}

/** Verifies a request as "Signature Calculations for the Authorization Header" of the S3 API reference says. Returns an error code or
 * undefined. */
function signatureProblem(request: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const { headers, method } = request;
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (!match) return "AccessDenied";
  const [, keyId, day, region, signedHeaders, signature] = match as unknown as string[];
  if (keyId !== KEY_ID) return "InvalidAccessKeyId";
  if (region !== REGION) return "AuthorizationHeaderMalformed";
  const [date, bodyHash] = [headers["x-amz-date"] as string, headers["x-amz-content-sha256"] as string];
  const age = Date.now() - Date.parse(date.replace(/^(.{4})(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
  if (!date.startsWith(day!) || !(Math.abs(age) < 900_000)) return "RequestTimeTooSkewed";
  if (bodyHash !== sha256(body)) return "XAmzContentSHA256Mismatch";
  const signed = signedHeaders!.split(";");
  if (!["host", "x-amz-content-sha256", "x-amz-date"].every((name) => signed.includes(name)))
    return "AccessDenied";
  const canonical = [
    method,
    url.pathname
      .split("/")
      .map((part) => escaped(decodeURIComponent(part)))
      .join("/"),
    [...url.searchParams]
      .map((pair) => pair.map(escaped).join("="))
      .sort()
      .join("&"),
    ...signed.map((name) => `${name}:${headers[name]}`),
    "",
    signedHeaders,
    bodyHash,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n");
  const key = [day!, region!, "s3", "aws4_request"].reduce(
    (above: string | Buffer, part) => createHmac("sha256", above).update(part).digest(),
    `AWS4${SECRET}`,
  );
  return createHmac("sha256", key).update(text).digest("hex") === signature
    ? undefined
    : "SignatureDoesNotMatch";
}

/** ListObjectsV2, in pages. The token is the last key, with characters that need escaping. */
function list(response: ServerResponse, objects: S3Server["objects"], query: URLSearchParams): void {
  const after = query.get("continuation-token")?.slice("+/= ".length) ?? "";
  const keys = [...objects.keys()]
    .filter((key) => key.startsWith(query.get("prefix") ?? "") && key > after)
    .sort();
  const page = keys.slice(0, Number(query.get("max-keys")));
  const contents = page.map((key) => {
    const { bytes, modified } = objects.get(key)!;
    return `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>&quot;0&quot;</ETag><Size>${bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  });
  const isTruncated = page.length < keys.length;
  const token = isTruncated ? `<NextContinuationToken>+/= ${page.at(-1)}</NextContinuationToken>` : "";
  response.writeHead(200, { "content-type": "application/xml" }).end(
    `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name><IsTruncated>${isTruncated}</IsTruncated>${contents.join("")}${token}</ListBucketResult>`,
  );
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>the reason</Message></Error>`);
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
