export default {
  test: { include: ["test/*.test.ts"], globals: true, testTimeout: 30000, hookTimeout: 30000, watch: false },
}
