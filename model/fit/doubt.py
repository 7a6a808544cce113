"""How clearly answers contradict the labels of their images, which are perhaps wrong."""

import torch
from torch import Tensor

CLEAR = 1.0  # of this doubt a label is contradicted as clearly as others are confirmed in the mean


def doubts(logits: Tensor, classes: Tensor) -> Tensor:
    """The doubt about each class, (N,), of any size; above 0 another class is likelier. Logits (N, C), classes (N,).

    It is the largest other logit less that of the class, in units of what confirmed classes are ahead in the mean; 0 if
    none is confirmed. Only logits of a head that has not seen the image say anything (Northcutt et al. 2021, "Confident
    Learning", arXiv 1911.00068). `lab/real/doubt.py` compares this order with those by scores.
    """
    own = logits.gather(1, classes[:, None]).squeeze(1)
    ahead = own - logits.scatter(1, classes[:, None], -torch.inf).amax(1)
    confirmed = ahead[ahead > 0]
    return -ahead / confirmed.mean() if len(confirmed) else torch.zeros_like(ahead)
