export default {
  test: { include: ["*.test.js"], testTimeout: 30000, watch: false, isolate: false },
}
