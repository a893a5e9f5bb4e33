// `ask-https.ts URL ADDRESS`: one request with the runtime's own client, as the engine makes it; prints what came.
import { runtime } from "#runtime";

const [url, connectTo] = process.argv.slice(2);
try {
  const { status, body } = await runtime.http.request({
    url: new URL(url!),
    connectTo: connectTo!,
    method: "GET",
    headers: {},
    timeoutMs: 10_000,
  });
  console.log(`answer ${status} ${await new Response(body).text()}`);
} catch (error) {
  console.log(`refused ${(error as { code?: string }).code} ${(error as Error).message}`);
}
