/** How many files with failed tests are run again; if there are more, the fault is hardly one of timing. */
const filesMax = 3;

/**
 * Runs files with failed tests once more, one at a time with nothing beside them: many suites at once on few cores make
 * waits run out. A test that now passes counts as passed, and is listed as `unsteady` in its suite's result: there is a
 * fault to find, in the test or in the product. A suite that failed without naming a test file is not run again.
 *
 * `results`: one `{ suite, totals, unsteady }` per suite, changed in place. `runSuite`: runs a suite with a file for
 * its report, and answers such a result.
 */
export async function repeatFailed(results, runSuite, report) {
  const failed = results.filter(result => result?.totals.failed > 0);
  if (failed.some(({ totals }) => totals.files.length < totals.failed || totals.files.includes(''))) return;
  const again = failed.flatMap(result => [...new Set(result.totals.files)].map(file => ({ result, file })));
  if (again.length > filesMax) return;
  for (const [index, { result, file }] of again.entries()) {
    const { totals: repeated } = await runSuite(result.suite.only(file), `${report}-${index}`);
    if (repeated.failed > 0) continue;
    const { totals, unsteady } = result;
    const isOfFile = (_, at) => totals.files[at] === file;
    const passed = totals.failures.filter(isOfFile);
    unsteady.push(...passed);
    result.totals = {
      ...totals,
      passed: totals.passed + passed.length,
      failed: totals.failed - passed.length,
      failures: totals.failures.filter((failure, at) => !isOfFile(failure, at)),
      files: totals.files.filter(of => of !== file),
    };
  }
}
