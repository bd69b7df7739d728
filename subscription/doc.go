// Package subscription keeps durable cursors over streams, and wakes workers when streams
// have more than their cursors say.
//
// A subscription names streams, or a pattern of their paths. When one of them grows,
// the subscription gets a wake with a new generation, unless one is under way. A
// worker that answers for the current wake moves the cursors; one that answers too
// late is fenced. A wake without an answer ends with its lease, and another one
// begins.
//
//	subs := subscription.New(streams, rows, nil)
//	sub, _, err := subs.Put(ctx, "indexer", subscription.Config{Kind: subscription.PullWake, Pattern: "answers/*", WakeStream: "wakes"})
//	wakes, err := subs.Grown(ctx, "answers/1") // after an append
//	claim, err := subs.Claim(ctx, "indexer", "worker 7")
//	more, err := subs.Answer(ctx, "indexer", claim.Generation, subscription.Answer{Wake: claim.Wake, Acks: …, Done: true})
//
// The cursor of a stream is an offset: everything before it was processed. How a wake
// reaches a worker (an event in a stream, a request) is left to the caller.
package subscription
