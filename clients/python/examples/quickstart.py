"""Saves a conversation and reads it, and follows an agent.

    STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) python3 quickstart.py
"""

import stet

with stet.connect() as client:
    talk = client.conversations.create(title="add retry")
    turns = [stet.turn("add retry to checkout", "Checkout tries three times now.")]
    client.conversations.save(talk["id"], turns=turns)  # durable when it returns
    turns.append(stet.turn("write a test", "checkout_test.py has it."))
    client.conversations.save(talk["id"], turns=turns)
    for message in client.conversations.transcript(talk["id"])["messages"]:
        print(f"{message['role']}: {message['text']}")

    agent = client.agents.create(name="count to three")
    for number in ("one", "two", "three"):
        client.agents.append(agent["id"], [{"textDelta": {"text": number}}], key=number)  # once, even if repeated
    client.agents.archive(agent["id"])
    for event in client.agents.follow(agent["id"]):  # each event once, across lost connections
        if event.kind == "update":
            print(f"agent: {event.update['textDelta']['text']}")
