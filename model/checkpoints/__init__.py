from model.checkpoints.load import load_checkpoint as load_checkpoint
