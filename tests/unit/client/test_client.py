"""vit_serve_client/client.py: what a notebook sends and sees."""

from vit_serve_client import Answer, Client, Map


def test_lists_are_sent_as_the_service_reads_them(service):
    with Client(service.url) as client:
        client.classify(b"image", labels=["a red hat", "a dog, asleep"], top_k=2)
        client.classify(b"image", labels="a red hat,a dog")
        client._ask("POST", "/classify", {"patches": [27, 28]}, [("image", b"image")])
    assert [dict(sent) for _, sent in service.ways] == [
        {"labels": '["a red hat", "a dog, asleep"]', "top_k": "2"},
        {"labels": "a red hat,a dog"},
        {"patches": "27,28"},
    ]


def test_objects_are_shown_in_a_line(service):
    found = Answer(label="star", embedding=[*range(768)])
    assert repr(found) == "Answer(label='star', embedding=[0, 1, 2, 3, 4, 5, ...])"
    assert repr(Client(service.url, key="secret")) == "Client('http://service.test/birds/')"
    facts = {"method": "evidence", "label": "star", "grid": [8, 8], "values": [0.0] * 64}
    assert repr(Map(facts, draw=bytes)) == "Map(method='evidence', label='star', grid=[8, 8])"
