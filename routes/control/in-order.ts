/** So many elements of one call are worked on at a time: one call shall not take all of the engine's connections. */
const AT_A_TIME = 4;

/** Works on a few elements at a time; the results come in the order of the elements. Rejects with the first bug. */
export async function inOrder<T, R>(elements: readonly T[], work: (element: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(elements.length);
  let next = 0;
  const worker = async () => {
    while (next < elements.length) {
      const index = next++;
      results[index] = await work(elements[index]!);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  return results;
}
