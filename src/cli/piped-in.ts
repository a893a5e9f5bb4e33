/** What is piped in, at the pace of whoever reads it. To be asked for once. */
export function pipedIn(stdin: NodeJS.ReadStream): ReadableStream<Uint8Array> {
  const chunks = stdin[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        // The iterator's own end would wait for the read that is open, maybe for ever.
        stdin.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
