"""Four documents and six judged queries whose words no document has: enough for a few pairs to be learned."""

DOCS = {"a": "car engine", "b": "boat engine", "c": "plum cake", "d": "boat and car"}
QUERIES = {str(i): text for i, text in enumerate(["motor", "motor power", "sweet", "sweet food", "vehicle", "ship"])}
QRELS = {"0": {"a": 1}, "1": {"a": 1}, "2": {"c": 1}, "3": {"c": 1}, "4": {"d": 1}, "5": {"b": 1}}
